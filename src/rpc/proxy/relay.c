/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relaying a unary call: see relay.h.
 *
 * DESIGN. A relayed call consists of the server's call, whose handler counts as running, and a
 * client call like that of channel_call. No thread waits for the client call; a callback on the
 * loop reports its end. So retries, deadlines, limits and the treatment of invalid responses are
 * those of client_call.c. The decoded request and its packed form are charged to the client,
 * because no number of threads bounds how many wait in memory.
 */
#include "rpc/proxy/relay.h"

#include <string.h>

#include "rpc/client/client_call_internal.h"
#include "rpc/server/call_internal.h"

struct relayed {
    struct relay relay;
    struct scope scope;
    struct channel *channel; /* NULL: the call cannot be relayed, or has been started */
    size_t charged;
    bool is_heavy;              /* the reply: workers decode it and pack it again */
    struct client_call *client; /* set when finished */
    ProtobufCMessage *reply;    /* NULL: failed with `error` */
    struct error *error;
};

/* ---- completion ---- */

/* Compressed replies too: the loop inflates nothing. See admission.h. */
static bool
is_heavy(const struct message *reply)
{
    return reply && (reply->is_compressed || reply->size > ADMISSION_LOOP_BYTES);
}

static void
end_packing(struct task *task)
{
    struct call *call = CONTAINER_OF(task, struct call, finished);
    loop_note_work_done(call->loop);
    call_finish(call);
}

static void
run_packing(struct work *work)
{
    struct call *call = CONTAINER_OF(work, struct call, work);
    call->result = call_pack_reply(call);
    call->finished.run = end_packing;
    loop_post(call->loop, &call->finished);
}

static bool
submit(struct call *call, void (*run)(struct work *work))
{
    call->work.run = run;
    call->work.is_short = false;
    return loop_submit_work(call->loop, &call->work);
}

/* Takes over the error. */
static void
end(struct call *call, ProtobufCMessage *reply, struct error *error)
{
    struct relayed *relayed = STEAL(call->relayed);
    const struct relay *relay = &relayed->relay;
    budget_give_back(call->budget, relayed->charged);
    call->scope = relayed->scope;
    if (reply)
        call->scope.reply = call->output = reply;
    if (relay->finish)
        error = relay->finish(call, relay->context, reply, error);
    if (!error && relayed->is_heavy && submit(call, run_packing))
        return;
    call->result = error ? error : call_pack_reply(call);
    call_finish(call);
}

static void
forward_metadata(struct metadata *to, struct arena *arena, const struct metadata *from)
{
    for (const struct metadata_entry *e = from->first; e; e = e->next)
        if (strcmp(e->key, "content-length") != 0)
            metadata_add_bytes(to, arena, e->key, e->key_size, e->value, e->value_size);
}

static void
take_reply(struct call *call)
{
    struct relayed *relayed = call->relayed;
    struct client_call *client = relayed->client;
    /* Like any decoded message, the reply may take twice the limit. */
    call->arena.limit = call->arena.used + 2 * client->reader.max_message_bytes;
    relayed->error = STEAL(client->result);
    if (!relayed->error)
        relayed->error =
            client_call_take_reply(client, &call->arena, &call->decoded, &relayed->reply);
}

static void
forward_reply(struct call *call)
{
    struct relayed *relayed = call->relayed;
    struct client_call *client = relayed->client;
    forward_metadata(&call->reply_headers, &call->arena, &client->response.headers);
    forward_metadata(&call->reply_trailers, &call->arena, &client->response.trailers);
    end(call, relayed->error ? NULL : relayed->reply, relayed->error);
    client_call_release(client);
}

static void
end_decoding(struct task *task)
{
    struct call *call = CONTAINER_OF(task, struct call, finished);
    loop_note_work_done(call->loop);
    forward_reply(call);
}

static void
run_decoding(struct work *work)
{
    struct call *call = CONTAINER_OF(work, struct call, work);
    take_reply(call);
    call->finished.run = end_decoding;
    loop_post(call->loop, &call->finished);
}

/* Without a thread the loop decodes a large reply, but it inflates none. */
static void
on_finished(struct client_call *client)
{
    struct call *call = client->owner;
    const struct message *message = client->result ? NULL : client->mailbox.in;
    call->relayed->client = client;
    call->relayed->is_heavy = is_heavy(message);
    if (call->relayed->is_heavy && submit(call, run_decoding))
        return;
    if (message && message->is_compressed)
        client->result = error_new(CODE_RESOURCE_EXHAUSTED,
                                   "too many calls are waiting for a thread; try again later");
    take_reply(call);
    forward_reply(call);
}

/* ---- start ---- */

/* Fields that are set anew for this hop, or describe the client's encoding of the message. */
static bool
is_hop_field(const struct metadata_entry *entry)
{
#define FIELD(name)                                                                                \
    {                                                                                              \
        name, sizeof(name) - 1                                                                     \
    }
    static const struct {
        const char *name;
        size_t size;
    } hop_fields[] = {
        FIELD("te"),
        FIELD("content-type"),
        FIELD("grpc-timeout"),
        FIELD("user-agent"),
        FIELD("host"),
        FIELD("content-length"),
        FIELD("grpc-encoding"),
        FIELD("grpc-accept-encoding"),
    };
    for (size_t i = 0; i < COUNT_OF(hop_fields); i++)
        if (entry->key_size == hop_fields[i].size &&
            memcmp(entry->key, hop_fields[i].name, hop_fields[i].size) == 0)
            return true;
    return false;
}

static struct client_call *
make_client_call(struct call *call, struct chunk *request)
{
    const struct relayed *relayed = call->relayed;
    const struct call_options options = {
        .timeout_ns = relayed->relay.timeout_ns,
        .metadata = relayed->relay.metadata,
        .parent = &call->parent,
    };
    struct client_call *client = client_call_new(relayed->channel, relayed->scope.method, &options);
    for (const struct metadata_entry *e = call->header.metadata.first; e; e = e->next)
        if (!is_hop_field(e))
            metadata_add_bytes(&client->metadata, &client->arena, e->key, e->key_size, e->value,
                               e->value_size);
    client_call_set_message(client, request);
    client->finished = on_finished;
    client->owner = call;
    return client;
}

static struct error *
pack_request(struct call *call, struct chunk **out)
{
    struct relayed *relayed = call->relayed;
    const ProtobufCMessage *request =
        relayed->relay.request ? relayed->relay.request : relayed->scope.request;
    if (!relayed->channel)
        return error_new(CODE_INTERNAL, "this call cannot be relayed, or not over this channel");
    struct error *error = framing_pack(request, out);
    if (error)
        return error;
    /* in addition to the decoded request, which is charged already */
    relayed->charged = (*out)->size;
    if (budget_take(call->budget, relayed->charged))
        return NULL;
    relayed->charged = 0;
    chunk_release(*out);
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "the memory limit for buffered requests is reached; try again later");
}

static void
begin(struct call *call)
{
    struct chunk *request;
    struct error *error = pack_request(call, &request);
    struct client_call *client = error ? NULL : make_client_call(call, request);
    struct channel *channel = STEAL(call->relayed->channel);
    if (client)
        client_call_start(client);
    else
        end(call, NULL, error);
    if (channel)
        channel_release(channel);
}

static void
drop(struct call *call)
{
    struct relayed *relayed = STEAL(call->relayed);
    if (relayed->channel)
        channel_release(relayed->channel);
}

void
rpc_relay(struct call *call, struct channel *channel, const struct relay *relay)
{
    const struct method *method = call->scope.method;
    bool is_whole_call = !call->server || (call->target && call->target->method == method);
    bool can_relay =
        method && is_whole_call && method->kind == METHOD_UNARY && channel->loop == call->loop;
    call->relayed = arena_alloc(&call->arena, sizeof *call->relayed);
    *call->relayed = (struct relayed){
        .relay = *relay,
        .scope = call->scope,
        .channel = can_relay ? channel_share(channel) : NULL,
    };
    call->next = (struct next_step){begin, drop};
}
