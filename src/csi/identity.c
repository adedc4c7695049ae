/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Identity: see identity.h. Never blocks, so it runs on the loop. */
#include "csi/identity.h"

#include <ctype.h>
#include <string.h>

#include "base/version.h"
#include "proto/csi.rpc.h"
#include "rpc/call.h"

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

static struct error *
get_plugin_info(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
                Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    const struct identity *identity = call_context(call);
    struct arena *arena = call_arena(call);
    reply->name = (char *)identity->driver_name;
    reply->vendor_version = (char *)SKYCAP_VERSION;
    reply->manifest = arena_alloc(arena, 2 * sizeof(void *));
    reply->manifest[reply->n_manifest++] = manifest_entry(arena, "csi", "1.13.0");
    reply->manifest[reply->n_manifest++] = manifest_entry(arena, "node", identity->node_id);
    return NULL;
}

/* Nothing is offered yet beyond Identity itself: an empty list is the true answer. */
static struct error *
get_plugin_capabilities(struct call *call, const Csi__V1__GetPluginCapabilitiesRequest *request,
                        Csi__V1__GetPluginCapabilitiesResponse *reply)
{
    (void)call;
    (void)request;
    (void)reply;
    return NULL;
}

static struct error *
probe(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    reply->ready = arena_alloc(call_arena(call), sizeof *reply->ready);
    google__protobuf__bool_value__init(reply->ready);
    reply->ready->value = true;
    return NULL;
}

static const struct csi_v1_identity handlers = {
    .get_plugin_info = {get_plugin_info, .on_loop = true},
    .get_plugin_capabilities = {get_plugin_capabilities, .on_loop = true},
    .probe = {probe, .on_loop = true},
};

void
identity_add(struct server *server, struct identity *identity)
{
    server_add_service(server, &csi_v1_identity_service, &handlers, identity);
}
