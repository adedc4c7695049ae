/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a streaming call: receiving, sending, and calls that stay open without a handler. See
 * call_internal.h.
 */
#include <string.h>

#include "rpc/server/call_internal.h"

/* ---- handler's thread ---- */

static void
on_mailbox_changed(struct task *task)
{
    struct call *call = CONTAINER_OF(task, struct call, mailbox_task);
    mailbox_acknowledge(&call->mailbox);
    call_reply_collect(call);
    if (call->answer != ANSWER_GONE)
        call_credit(call);
}

static void
notify_loop(struct call *call, bool wanted)
{
    if (!wanted)
        return;
    call->mailbox_task.run = on_mailbox_changed;
    loop_post(call->loop, &call->mailbox_task);
}

struct error *
call_recv(struct call *call, void *out)
{
    ProtobufCMessage *decoded = NULL;
    bool notify;
    struct message *message = mailbox_take(&call->mailbox, &notify);
    notify_loop(call, notify);
    arena_clear(&call->message_arena);
    charge_clear(&call->message_decoded);
    struct error *error = NULL;
    if (message)
        error = call_unpack(call, message, &call->message_arena, &call->message_decoded, &decoded);
    else if (call_is_cancelled(call))
        error = call_cancelled_error();
    memcpy(out, &decoded, sizeof decoded);
    return error;
}

struct error *
call_send(struct call *call, const ProtobufCMessage *message)
{
    if (call->state == CALL_ON_LOOP)
        return error_new(CODE_INTERNAL,
                         "a handler on the loop must not send, because that may block");
    struct chunk *chunk;
    struct error *error = framing_pack(message, &chunk);
    if (error)
        return error;
    call_log_message(call, "reply", message);
    error = call_reply_charge(call, chunk->size);
    if (error) {
        chunk_release(chunk);
        return error;
    }
    bool notify;
    call->sent_any = true;
    bool open = mailbox_put(&call->mailbox, chunk, &notify);
    notify_loop(call, notify);
    return open ? NULL : call_cancelled_error();
}

/* ---- parked calls ---- */

bool
call_push(struct call *call, const ProtobufCMessage *message)
{
    struct chunk *chunk = NULL;
    bool notify, is_free = call->answer < ANSWER_ENDED && !atomic_load(&call->out_charged);
    struct error *error = is_free ? framing_pack(message, &chunk) : NULL;
    if (!error && chunk)
        error = call_reply_charge(call, chunk->size);
    bool is_sent = !error && chunk;
    if (is_sent) {
        call_log_message(call, "reply", message);
        mailbox_put(&call->mailbox, STEAL(chunk), &notify);
        mailbox_acknowledge(&call->mailbox);
        call_reply_collect(call);
    }
    if (chunk)
        chunk_release(chunk);
    error_free(error);
    return is_sent;
}

void
call_unpark(struct call *call, struct error *status)
{
    call->cancelled = call->park_cancelled = NULL;
    call->result = status;
    call_finish(call);
}

static void
cancel_parked(struct call *call)
{
    call->park_cancelled(call);
    call_unpark(call, call_cancelled_error());
}

void
call_park(struct call *call, void (*cancelled)(struct call *call))
{
    call->park_cancelled = cancelled;
    call->cancelled = cancel_parked;
}
