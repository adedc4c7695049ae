/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls to a server: see channel.h. The loop's side is in client_call.c. */
#include <string.h>

#include "rpc/client/channel.h"
#include "rpc/client/client_call_internal.h"

struct error *
client_call_open(struct channel *channel, const struct method *method,
                 const struct call_options *options, struct client_call **out)
{
    static const struct call_options plain;
    *out = client_call_new(channel, method, options ? options : &plain);
    loop_post(channel->loop, &(*out)->start);
    return NULL;
}

static void
on_mailbox_changed(struct task *task)
{
    struct client_call *call = CONTAINER_OF(task, struct client_call, mailbox_task);
    mailbox_acknowledge(&call->mailbox);
    if (call->is_finished || !call->stream.conn) {
        client_call_release(call);
        return;
    }
    bool ended = mailbox_collect(&call->mailbox, &call->stream.out);
    if (ended && !call->stream.out_ended)
        stream_end(&call->stream, NULL, 0);
    else
        stream_resume(&call->stream);
    client_call_credit(call);
    client_call_release(call);
}

/* The task holds a reference: the thread may drop its own before the loop runs the task. */
static void
notify_loop(struct client_call *call, bool wanted)
{
    if (!wanted)
        return;
    atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
    call->mailbox_task.run = on_mailbox_changed;
    loop_post(call->loop, &call->mailbox_task);
}

struct error *
client_call_send(struct client_call *call, const ProtobufCMessage *message)
{
    struct chunk *chunk;
    struct error *error = framing_pack(message, &chunk);
    if (error)
        return error;
    bool notify;
    bool open = mailbox_put(&call->mailbox, chunk, &notify);
    notify_loop(call, notify);
    return open ? NULL : error_new(CODE_CANCELLED, "%s: the call has ended", call->method->path);
}

void
client_call_close_send(struct client_call *call)
{
    bool notify;
    mailbox_end_out(&call->mailbox, &notify);
    notify_loop(call, notify);
}

struct error *
client_call_recv(struct client_call *call, struct arena *arena, void *out)
{
    ProtobufCMessage *decoded = NULL;
    bool notify, is_own = call->account == call->loop->admission.own;
    struct message *message = mailbox_take(&call->mailbox, &notify);
    notify_loop(call, notify);
    struct error *error = NULL;
    if (message)
        error = client_call_unpack(call, message, arena, is_own ? NULL : &call->decoded, &decoded);
    memcpy(out, &decoded, sizeof decoded);
    return error;
}

struct error *
client_call_finish(struct client_call *call)
{
    bool notify;
    struct message *message;
    while ((message = mailbox_take(&call->mailbox, &notify))) {
        message_free(message, &call->account->bytes);
        notify_loop(call, notify);
    }
    mailbox_wait_closed(&call->mailbox);
    return STEAL(call->result);
}

static void
cancel_on_loop(struct task *task)
{
    struct client_call *call = CONTAINER_OF(task, struct client_call, cancel);
    client_call_end_cancelled(call);
    client_call_release(call);
}

void
client_call_cancel(struct client_call *call)
{
    if (atomic_exchange(&call->cancel_requested, true))
        return;
    atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
    call->cancel.run = cancel_on_loop;
    loop_post(call->loop, &call->cancel);
}

const struct metadata *
client_call_headers(const struct client_call *call)
{
    return &call->response.headers;
}

const struct metadata *
client_call_trailers(const struct client_call *call)
{
    return &call->response.trailers;
}

static bool
has_ended(struct client_call *call)
{
    pthread_mutex_lock(&call->mailbox.lock);
    bool ended = call->mailbox.closed;
    pthread_mutex_unlock(&call->mailbox.lock);
    return ended;
}

void
client_call_free(struct client_call *call)
{
    if (!call)
        return;
    if (!has_ended(call))
        client_call_cancel(call);
    client_call_release(call);
}

struct error *
channel_call(struct channel *channel, const struct method *method, const ProtobufCMessage *request,
             const struct call_options *options, struct arena *arena, void *reply)
{
    static const struct call_options plain;
    struct chunk *message;
    struct error *error = framing_pack(request, &message);
    if (error)
        return error;
    struct client_call *call = client_call_new(channel, method, options ? options : &plain);
    client_call_set_message(call, message);
    loop_post(channel->loop, &call->start);
    mailbox_wait_closed(&call->mailbox);
    error = STEAL(call->result);
    if (!error)
        error = client_call_take_reply(call, arena, options ? options->charge : NULL, reply);
    client_call_release(call);
    return error;
}
