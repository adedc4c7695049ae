/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing one message on: see relay.h.
 *
 * DESIGN. A relayed call is the server's call, whose handler counts as running, and a client's call beside it: the same that channel_call makes, but
 * nobody waits for its end, which comes back as a callback on the loop. So retries, deadlines, limits and what garbled answers amount to
 * are client_call.c's. What waits in memory meanwhile, the decoded request and its packed form, is charged to the client: no number
 * of threads bounds it.
 */
#include "rpc/proxy/relay.h"

#include <string.h>

#include "rpc/client/client_call_internal.h"
#include "rpc/server/call_internal.h"

struct relayed {
    struct relay relay;
    struct scope scope;
    struct channel *channel; /* NULL: not one that the call can go to; or it is on its way */
    size_t charged;
    struct client_call *client; /* once it has finished */
    ProtobufCMessage *reply;    /* NULL: an error in its place */
    struct error *error;
};

/* ---- the end ---- */

/* Takes the error. */
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
    call->result = error ? error : call_pack_reply(call);
    call_finish(call);
}

static void
pass_metadata(struct metadata *to, struct arena *arena, const struct metadata *from)
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
    /* The reply may be as large, decoded, as any other: twice the limit. */
    call->arena.limit = call->arena.used + 2 * client->reader.max_message_bytes;
    relayed->error = STEAL(client->result);
    if (!relayed->error)
        relayed->error =
            client_call_take_reply(client, &call->arena, &call->decoded, &relayed->reply);
}

static void
pass_reply(struct call *call)
{
    struct relayed *relayed = call->relayed;
    struct client_call *client = relayed->client;
    pass_metadata(&call->reply_headers, &call->arena, &client->response.headers);
    pass_metadata(&call->reply_trailers, &call->arena, &client->response.trailers);
    end(call, relayed->error ? NULL : relayed->reply, relayed->error);
    client_call_release(client);
}

static void
end_inflating(struct task *task)
{
    struct call *call = CONTAINER_OF(task, struct call, finished);
    loop_note_work_done(call->loop);
    pass_reply(call);
}

static void
run_inflating(struct work *work)
{
    struct call *call = CONTAINER_OF(work, struct call, work);
    take_reply(call);
    call->finished.run = end_inflating;
    loop_post(call->loop, &call->finished);
}

/* The loop inflates nothing. */
static void
on_finished(struct client_call *client)
{
    struct call *call = client->owner;
    const struct message *message = client->result ? NULL : client->mailbox.in;
    call->relayed->client = client;
    call->work.run = run_inflating;
    call->work.is_short = false;
    if (message && message->is_compressed && loop_submit_work(call->loop, &call->work))
        return;
    if (message && message->is_compressed)
        client->result =
            error_new(CODE_RESOURCE_EXHAUSTED, "too many calls wait for a thread; try again later");
    take_reply(call);
    pass_reply(call);
}

/* ---- the beginning ---- */

/* Told anew for this hop, or true of the client's form of the message only. */
static bool
is_own_field(const struct metadata_entry *entry)
{
#define OWN(name)                                                                                  \
    {                                                                                              \
        name, sizeof(name) - 1                                                                     \
    }
    static const struct {
        const char *name;
        size_t size;
    } own[] = {
        OWN("te"),   OWN("content-type"),   OWN("grpc-timeout"),  OWN("user-agent"),
        OWN("host"), OWN("content-length"), OWN("grpc-encoding"), OWN("grpc-accept-encoding"),
    };
    for (size_t i = 0; i < COUNT_OF(own); i++)
        if (entry->key_size == own[i].size && memcmp(entry->key, own[i].name, own[i].size) == 0)
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
    for (const struct metadata_entry *e = call->head.metadata.first; e; e = e->next)
        if (!is_own_field(e))
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
        return error_new(CODE_INTERNAL, "the call cannot be relayed, or not to this channel");
    struct error *error = framing_pack(request, out);
    if (error)
        return error;
    relayed->charged = (*out)->size; /* beside the decoded request, which is charged already */
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
    bool can_go =
        method && is_whole_call && method->kind == METHOD_UNARY && channel->loop == call->loop;
    call->relayed = arena_alloc(&call->arena, sizeof *call->relayed);
    *call->relayed = (struct relayed){
        .relay = *relay,
        .scope = call->scope,
        .channel = can_go ? channel_share(channel) : NULL,
    };
    call->next = (struct next_step){begin, drop};
}
