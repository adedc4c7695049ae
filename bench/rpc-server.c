/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server whose parts bench/run compares with each other (what it compares with other servers is skycap itself):
 *
 *     rpc-server --listen ADDRESS loop|worker
 *     rpc-server --listen ADDRESS --to ADDRESS relay
 *
 * csi.v1.Identity/GetPluginInfo answers what skycap answers, from a handler on the loop or the very same one on a
 * worker; or it asks another server and changes the answer, as one does that has many drivers behind it. grpc.testing.TestService/StreamingOutputCall sends as fast as the client takes; it makes its bytes only once.
 */
#include <string.h>

#include "proto/csi.rpc.h"
#include "rpc/proxy/relay.h"
#include "rpc/server/call.h"
#include "tests/interop.rpc.h"
#include "tests/interop/flags.h"

#define MAX_PAYLOAD (1 << 20)

typedef Grpc__Testing__StreamingOutputCallRequest output_request;
typedef Grpc__Testing__StreamingOutputCallResponse output_response;
typedef Csi__V1__GetPluginInfoResponse__ManifestEntry manifest_entry;

static struct error *
get_plugin_info(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
                Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    struct arena *arena = call_arena(call);
    manifest_entry *entries = arena_alloc(arena, 2 * sizeof *entries);
    csi__v1__get_plugin_info_response__manifest_entry__init(&entries[0]);
    csi__v1__get_plugin_info_response__manifest_entry__init(&entries[1]);
    entries[0].key = (char *)"csi";
    entries[0].value = (char *)"1.13.0";
    entries[1].key = (char *)"node";
    entries[1].value = (char *)"bench";
    reply->name = (char *)"csi.skycap.dev";
    reply->vendor_version = (char *)"0.1.0";
    reply->manifest = arena_alloc(arena, 2 * sizeof *reply->manifest);
    reply->manifest[0] = &entries[0];
    reply->manifest[1] = &entries[1];
    reply->n_manifest = 2;
    return NULL;
}

static const struct csi_v1_identity identity_on_loop = {
    .get_plugin_info = {get_plugin_info, .on_loop = true},
};
static const struct csi_v1_identity identity_on_worker = {
    .get_plugin_info = {get_plugin_info},
};

static struct error *
rewrite_version(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    (void)context;
    if (error)
        return error;
    Csi__V1__GetPluginInfoResponse *info = (Csi__V1__GetPluginInfoResponse *)reply;
    info->vendor_version = arena_string(call_arena(call), info->vendor_version);
    return NULL;
}

static struct error *
relay_plugin_info(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
                  Csi__V1__GetPluginInfoResponse *reply)
{
    (void)request;
    (void)reply;
    rpc_relay(call, call_context(call), &(struct relay){.finish = rewrite_version});
    return NULL;
}

static const struct csi_v1_identity identity_relayed = {
    .get_plugin_info = {relay_plugin_info, .on_loop = true},
};

static struct error *
streaming_output_call(struct call *call, const output_request *request)
{
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
    output_response reply = GRPC__TESTING__STREAMING_OUTPUT_CALL_RESPONSE__INIT;
    reply.payload = &payload;
    payload.body.data = arena_alloc(call_arena(call), MAX_PAYLOAD);
    memset(payload.body.data, 'x', MAX_PAYLOAD);
    for (size_t i = 0; i < request->n_response_parameters; i++) {
        int32_t size = request->response_parameters[i]->size;
        if (size < 0 || size > MAX_PAYLOAD)
            return error_new(CODE_INVALID_ARGUMENT, "a payload of %d bytes is not on offer", size);
        payload.body.len = (size_t)size;
        struct error *error = call_send(call, &reply.base);
        if (error)
            return error;
    }
    return NULL;
}

static const struct grpc_testing_test_service stream_handlers = {
    .streaming_output_call = {streaming_output_call},
};

static const struct csi_v1_identity *
find_identity(const char *where)
{
    if (where && strcmp(where, "loop") == 0)
        return &identity_on_loop;
    if (where && strcmp(where, "worker") == 0)
        return &identity_on_worker;
    if (where && strcmp(where, "relay") == 0)
        return &identity_relayed;
    flags_must(error_new(CODE_INVALID_ARGUMENT,
                         "usage: rpc-server --listen ADDRESS loop|worker, or --to ADDRESS relay"));
    return NULL;
}

int
main(int count, char **arguments)
{
    struct flags flags;
    struct log log;
    flags_read(&flags, count, arguments);
    const struct csi_v1_identity *identity = find_identity(flags.rest[0]);
    struct runtime *runtime = flags_runtime(&flags, &log);
    struct channel *channel = NULL;
    if (identity == &identity_relayed)
        flags_must(channel_open(runtime, flags.to ? flags.to : "", &(struct channel_options){0},
                                &channel));
    struct server *server = flags_server(&flags, runtime);
    server_add_service(server, &csi_v1_identity_service, identity, channel);
    server_add_service(server, &grpc_testing_test_service_service, &stream_handlers, NULL);
    struct tls_context *tls = flags_tls(&flags);
    flags_serve(&flags, server, tls);
    server_free(server);
    channel_close(channel);
    runtime_close(runtime);
    tls_context_close(tls);
    return 0;
}
