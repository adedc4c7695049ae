/* SPDX-License-Identifier: Apache-2.0 */
/* Registration with the kubelet: see registration.h. */
#include "csi/registration.h"

#include "proto/pluginregistration.rpc.h"
#include "rpc/server/call.h"

static struct error *
get_info(struct call *call, const Pluginregistration__InfoRequest *request,
         Pluginregistration__PluginInfo *reply)
{
    (void)request;
    const struct registration *registration = call_context(call);
    reply->type = "CSIPlugin";
    reply->name = (char *)registration->driver_name;
    reply->endpoint = (char *)registration->socket_path;
    reply->supported_versions = arena_alloc(call_arena(call), sizeof(char *));
    reply->supported_versions[0] = "1.0.0";
    reply->n_supported_versions = 1;
    registration->note(registration->context, REGISTRATION_ASKED);
    return NULL;
}

static struct error *
notify_status(struct call *call, const Pluginregistration__RegistrationStatus *request,
              Pluginregistration__RegistrationStatusResponse *reply)
{
    (void)reply;
    const struct registration *registration = call_context(call);
    if (request->plugin_registered)
        log_info(registration->log, "registered with the kubelet");
    else
        log_error(registration->log, "the kubelet rejected the driver",
                  LOG_TEXT("error", request->error));
    registration->note(registration->context,
                       request->plugin_registered ? REGISTRATION_ACCEPTED : REGISTRATION_REFUSED);
    return NULL;
}

static const struct pluginregistration_registration handlers = {
    .get_info = {get_info, .on_loop = true},
    .notify_registration_status = {notify_status, .on_loop = true},
};

void
registration_add(struct server *server, struct registration *registration)
{
    server_add_service(server, &pluginregistration_registration_service, &handlers, registration);
}
