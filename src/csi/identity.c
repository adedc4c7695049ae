/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Identity: see identity.h. */
#include "csi/identity.h"

#include <ctype.h>
#include <string.h>

#include "base/version.h"
#include "node/health.h"
#include "proto/csi.rpc.h"
#include "rpc/server/call.h"
#include "volumes/group.h"

#define MAX_NAME 63

struct error *
identity_check_name(const char *name)
{
    size_t size = strlen(name);
    bool valid = size > 0 && size <= MAX_NAME && isalnum((unsigned char)name[0]) &&
                 isalnum((unsigned char)name[size - 1]);
    for (size_t i = 0; valid && i < size; i++)
        valid = isalnum((unsigned char)name[i]) || name[i] == '.' || name[i] == '-';
    if (valid)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "driver name \"%s\": use a domain name of at most %d letters, digits, '-' and "
                     "'.', like csi.skycap.dev",
                     name, MAX_NAME);
}

static Csi__V1__GetPluginInfoResponse__ManifestEntry *
manifest_entry(struct arena *arena, const char *key, const char *value)
{
    Csi__V1__GetPluginInfoResponse__ManifestEntry *entry = arena_alloc(arena, sizeof *entry);
    csi__v1__get_plugin_info_response__manifest_entry__init(entry);
    entry->key = (char *)key;
    entry->value = (char *)value;
    return entry;
}

void
identity_fill_info(const char *driver_name, const char *node_id, struct arena *arena,
                   Csi__V1__GetPluginInfoResponse *reply)
{
    reply->name = (char *)driver_name;
    reply->vendor_version = (char *)SKYCAP_VERSION;
    reply->manifest = arena_alloc(arena, 2 * sizeof(void *));
    reply->manifest[reply->n_manifest++] = manifest_entry(arena, "csi", "1.13.0");
    reply->manifest[reply->n_manifest++] = manifest_entry(arena, "node", node_id);
}

static struct error *
get_plugin_info(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
                Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    const struct identity *identity = call_context(call);
    identity_fill_info(identity->driver_name, identity->node_id, call_arena(call), reply);
    return NULL;
}

static Csi__V1__PluginCapability *
service_capability(struct arena *arena, Csi__V1__PluginCapability__Service__Type type)
{
    Csi__V1__PluginCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__plugin_capability__init(capability);
    capability->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
    capability->service = arena_alloc(arena, sizeof *capability->service);
    csi__v1__plugin_capability__service__init(capability->service);
    capability->service->type = type;
    return capability;
}

static Csi__V1__PluginCapability *
expansion_capability(struct arena *arena)
{
    Csi__V1__PluginCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__plugin_capability__init(capability);
    capability->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
    capability->volume_expansion = arena_alloc(arena, sizeof *capability->volume_expansion);
    csi__v1__plugin_capability__volume_expansion__init(capability->volume_expansion);
    capability->volume_expansion->type = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE;
    return capability;
}

#define SERVICE(name) CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##name

/* Derived from the functions of the back end. */
static struct error *
get_plugin_capabilities(struct call *call, const Csi__V1__GetPluginCapabilitiesRequest *request,
                        Csi__V1__GetPluginCapabilitiesResponse *reply)
{
    (void)request;
    const struct identity *identity = call_context(call);
    const struct controller *controller = identity->controller;
    if (!controller)
        return NULL;
    const struct backend_ops *ops = controller->engine->backend->ops;
    const struct {
        Csi__V1__PluginCapability__Service__Type type;
        bool can;
    } services[] = {
        {SERVICE(CONTROLLER_SERVICE), true},
        {SERVICE(VOLUME_ACCESSIBILITY_CONSTRAINTS), true},
        {SERVICE(GROUP_CONTROLLER_SERVICE), group_is_possible(controller->engine)},
        {SERVICE(SNAPSHOT_METADATA_SERVICE), ops->copy && ops->extents},
        {SERVICE(SNAPSHOT_ACCESSIBILITY_CONSTRAINTS), ops->copy && controller->advertises_csi_1_13},
    };
    struct arena *arena = call_arena(call);
    reply->capabilities = arena_alloc(arena, (COUNT_OF(services) + 1) * sizeof(void *));
    for (size_t i = 0; i < COUNT_OF(services); i++)
        if (services[i].can)
            reply->capabilities[reply->n_capabilities++] =
                service_capability(arena, services[i].type);
    if (ops->change)
        reply->capabilities[reply->n_capabilities++] = expansion_capability(arena);
    return NULL;
}

static struct error *
probe(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    const struct identity *identity = call_context(call);
    struct error *error AUTO(error_cleanup) =
        identity->controller ? health_check_ready(identity->controller->engine) : NULL;
    if (error)
        return error_new(CODE_FAILED_PRECONDITION, "%s", error->message);
    reply->ready = arena_alloc(call_arena(call), sizeof *reply->ready);
    google__protobuf__bool_value__init(reply->ready);
    reply->ready->value = true;
    return NULL;
}

const struct csi_v1_identity identity_handlers = {
    .get_plugin_info = {get_plugin_info, .on_loop = true},
    .get_plugin_capabilities = {get_plugin_capabilities, .on_loop = true},
    .probe = {probe},
};
