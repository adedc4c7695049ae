/* SPDX-License-Identifier: Apache-2.0 */
/* Another node: see remote.h. */
#include "cluster/remote.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "message/message_bytes.h"
#include "proto/cluster.rpc.h"
#include "rpc/client/channel.h"

#define CONNECT_TIMEOUT_MS 3000
#define MAX_BACKOFF_MS 5000
/* A node that falls silent fails the calls in progress after the sum of these. */
#define KEEPALIVE_MS 2000
#define KEEPALIVE_TIMEOUT_MS 3000
#define MAX_REPLY_BYTES (16u << 20)
#define FAILING_NS (UINT64_C(60) * 1000000000)

struct remote {
    atomic_uint references;
    char *node_id;
    char *address;
    char *tls_name;
    struct channel *channel;
    atomic_ullong calls;
    atomic_ullong failures;
    atomic_uint_fast64_t failed_ns; /* when the last call did not reach the node; 0: it did */
};

static void
free_remote(struct remote *remote)
{
    channel_retire(remote->channel);
    free(remote->node_id);
    free(remote->address);
    free(remote->tls_name);
    free(remote);
}

struct error *
remote_open(const struct remote_options *options, struct remote **out)
{
    struct remote *remote = memory_zeroed(sizeof *remote);
    atomic_init(&remote->references, 1);
    remote->node_id = memory_string(options->node_id);
    remote->address = memory_string(options->address);
    if (asprintf(&remote->tls_name, "node.%s", options->node_id) < 0)
        memory_exhausted();
    struct channel_options channel = {
        .tls = options->tls,
        .tls_name = options->tls ? remote->tls_name : NULL,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_backoff_ms = MAX_BACKOFF_MS,
        .keepalive_ms = KEEPALIVE_MS,
        .keepalive_timeout_ms = KEEPALIVE_TIMEOUT_MS,
        .max_message_bytes = MAX_REPLY_BYTES,
    };
    struct error *error =
        channel_open(options->runtime, options->address, &channel, &remote->channel);
    if (error) {
        free_remote(remote);
        return error_wrap(error, "the address of node \"%s\"", options->node_id);
    }
    *out = remote;
    return NULL;
}

struct remote *
remote_share(struct remote *remote)
{
    atomic_fetch_add_explicit(&remote->references, 1, memory_order_relaxed);
    return remote;
}

void
remote_release(struct remote *remote)
{
    if (remote && atomic_fetch_sub_explicit(&remote->references, 1, memory_order_acq_rel) == 1)
        free_remote(remote);
}

void
remote_stop(struct remote *remote)
{
    channel_stop(remote->channel);
}

const char *
remote_node_id(const struct remote *remote)
{
    return remote->node_id;
}

const char *
remote_address(const struct remote *remote)
{
    return remote->address;
}

bool
remote_is_failing(const struct remote *remote)
{
    uint64_t failed_ns = atomic_load_explicit(&remote->failed_ns, memory_order_relaxed);
    return failed_ns && clock_now_ns() - failed_ns < FAILING_NS;
}

struct remote_counts
remote_count(const struct remote *remote)
{
    return (struct remote_counts){atomic_load(&remote->calls), atomic_load(&remote->failures),
                                  atomic_load(&remote->failed_ns) != 0};
}

/* A node that answers with an error is there. A caller who gave up says nothing about it. */
static void
note_result(struct remote *remote, const struct error *error)
{
    bool has_answered = !error || error->from_peer;
    bool is_away = !has_answered && error->code == CODE_UNAVAILABLE;
    atomic_fetch_add(&remote->calls, 1);
    atomic_fetch_add(&remote->failures, !has_answered && error->code != CODE_CANCELLED);
    if (has_answered || is_away)
        atomic_store_explicit(&remote->failed_ns, is_away ? clock_now_ns() : 0,
                              memory_order_relaxed);
}

struct error *
remote_ask(struct remote *remote, struct call *call, const struct method *method,
           const ProtobufCMessage *request, uint64_t timeout_ns, void *reply)
{
    struct call_options options = {
        .timeout_ns = timeout_ns,
        .parent = call_as_parent(call),
        .charge = call_make_room(call, 2 * MAX_REPLY_BYTES),
    };
    struct error *error =
        channel_call(remote->channel, method, request, &options, call_arena(call), reply);
    note_result(remote, error);
    return error && !error->from_peer ? error_wrap(error, "node \"%s\"", remote->node_id) : error;
}

struct error *
remote_begin(struct remote *remote, struct call *call, const struct method *method,
             struct client_call **out)
{
    struct call_options options = {.parent = call_as_parent(call)};
    struct error *error = client_call_open(remote->channel, method, &options, out);
    note_result(remote, error);
    return error_wrap(error, "node \"%s\"", remote->node_id);
}

struct error *
remote_stream(struct remote *remote, struct call *call, const struct method *method,
              const ProtobufCMessage *request, struct client_call **out)
{
    struct error *error = remote_begin(remote, call, method, out);
    if (error)
        return error;
    error_free(client_call_send(*out, request)); /* client_call_finish has the error */
    client_call_close_send(*out);
    return NULL;
}

/* Decodes in place of the initialised reply. */
static struct error *
read_reply(const struct remote *remote, const struct method *method,
           const ProtobufCBinaryData *bytes, struct arena *arena, ProtobufCMessage *out)
{
    const ProtobufCMessage *decoded =
        message_bytes_unpack(method->output, bytes->data, bytes->len, arena);
    if (!decoded)
        return error_new(CODE_INTERNAL, "node \"%s\" has answered %s with an invalid message",
                         remote->node_id, method->path);
    memcpy(out, decoded, method->output->sizeof_message);
    return NULL;
}

struct error *
remote_call(struct remote *remote, struct call *call, const struct remote_call *what,
            ProtobufCMessage *reply)
{
    struct arena *arena = call_arena(call);
    Skycap__V1__PeerCallRequest request = SKYCAP__V1__PEER_CALL_REQUEST__INIT;
    Skycap__V1__PeerCallReply *answer;
    request.connection = (char *)what->connection;
    request.method = (char *)what->method->path;
    request.request.data = message_bytes_pack(what->request, arena, &request.request.len);
    struct error *error =
        remote_ask(remote, call, SKYCAP_V1_PEER_CALL, &request.base, what->timeout_ns, &answer);
    return error ? error : read_reply(remote, what->method, &answer->reply, arena, reply);
}
