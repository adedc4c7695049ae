/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a server call: see call_internal.h for the order of the files.
 *
 * LIFE. A call is created when its stream opens. It is freed on the loop thread once the stream is
 * closed and no handler runs. If the client disconnects, the handler runs to its end (CSI has no
 * cancellation) and its answer is dropped.
 */
#include <assert.h>
#include <string.h>

#include "rpc/grpc/grpc_text.h"
#include "rpc/server/call_internal.h"

#define FIRST_BLOCK_BYTES 1536
#define REFUSALS_LOG_NS 1000000000u

/* ---- properties ---- */

bool
call_takes_stream(const struct call *call)
{
    return call->target && method_is_client_streaming(call->target->method);
}

bool
call_sends_stream(const struct call *call)
{
    return call->target && method_is_server_streaming(call->target->method);
}

bool
call_is_streaming(const struct call *call)
{
    return call_takes_stream(call) || call_sends_stream(call);
}

bool
call_is_running(const struct call *call)
{
    return call->state == CALL_WAITING || call->state == CALL_RUNNING ||
           call->state == CALL_ON_LOOP;
}

static bool
was_started(const struct call *call)
{
    return call->state >= CALL_RUNNING;
}

struct method_metrics *
call_metrics(const struct call *call)
{
    return call->target ? call->target->metrics : call->server->unknown_metrics;
}

/* ---- resources ---- */

void
call_set_budget(struct call *call, struct budget *budget)
{
    call->budget = call->reader.budget = budget;
    call->decoded.budget = call->message_decoded.budget = budget;
    call->decoded.free = call->message_decoded.free = ADMISSION_CALL_BYTES;
}

void
call_discharge(struct call *call, size_t size)
{
    atomic_fetch_sub_explicit(&call->out_charged, size, memory_order_relaxed);
    budget_give_back(call->budget, size);
}

void
call_credit(struct call *call)
{
    size_t held = call_takes_stream(call) ? mailbox_hold(&call->mailbox, call->uncredited,
                                                         message_reader_pending(&call->reader))
                                          : 0;
    stream_consume(&call->stream, call->uncredited - held);
    call->uncredited = held;
}

/* ---- end ---- */

void
call_cancel(struct call *call)
{
    atomic_store_explicit(&call->parent.is_cancelled, true, memory_order_release);
    if (call->has_mailbox)
        mailbox_close(&call->mailbox);
    client_call_cancel_children(&call->parent);
    void (*cancelled)(struct call *) = STEAL(call->cancelled);
    if (cancelled)
        cancelled(call);
}

bool
call_end_answer(struct call *call)
{
    if (call->answer >= ANSWER_ENDED)
        return false;
    call->answer = ANSWER_ENDED;
    loop_disarm(call->loop, &call->deadline);
    return true;
}

void
call_reset_malformed(struct call *call)
{
    bool is_counted = call->state != CALL_NEW;
    /* The code that clients derive from this reset. */
    if (call_end_answer(call) && is_counted)
        call_count(call, grpc_text_code_of_rst(NGHTTP2_PROTOCOL_ERROR),
                   "the request violates HTTP/2", timers_now());
    stream_reset(&call->stream, NGHTTP2_PROTOCOL_ERROR);
}

/* A flood of requests that are refused or never complete must not flood the log. */
static enum log_level
level_of(const struct call *call, enum code code)
{
    if (code == CODE_INTERNAL || code == CODE_UNKNOWN || code == CODE_DATA_LOSS)
        return LOG_WARN;
    bool is_noise =
        !was_started(call) && (code == CODE_RESOURCE_EXHAUSTED || code == CODE_CANCELLED ||
                               (code == CODE_DEADLINE_EXCEEDED && !call->stream.in_ended));
    return is_noise ? LOG_DEBUG : LOG_INFO;
}

/* Logs all refusals of a second in one line. */
static void
log_refusals(const struct call *call, const char *message, uint64_t now)
{
    struct admission *admission = &call->loop->admission;
    admission->refusals++;
    if (now - admission->refusals_told_at < REFUSALS_LOG_NS)
        return;
    log_warn(call->loop->log, "calls are refused", LOG_TEXT("peer", call->peer->address),
             LOG_NUMBER("calls", admission->refusals), LOG_TEXT("error", message));
    admission->refusals_told_at = now;
    admission->refusals = 0;
}

static void
log_call(const struct call *call, enum code code, const char *message, uint64_t nanoseconds)
{
    const struct log *log = call->loop->log;
    enum log_level level = level_of(call, code);
    if (message)
        LOG_LATER(log, level, "call", LOG_TEXT("method", call->header.path),
                  LOG_TEXT("peer", call->peer->address), LOG_TEXT("code", error_code_name(code)),
                  LOG_NUMBER("us", nanoseconds / 1000), LOG_TEXT("error", message));
    else
        LOG_LATER(log, level, "call", LOG_TEXT("method", call->header.path),
                  LOG_TEXT("peer", call->peer->address), LOG_TEXT("code", error_code_name(code)),
                  LOG_NUMBER("us", nanoseconds / 1000));
}

void
call_count(struct call *call, enum code code, const char *message, uint64_t now)
{
    uint64_t nanoseconds = now - call->started_at;
    metrics_count_call(call_metrics(call), code, nanoseconds);
    log_call(call, code, message, nanoseconds);
    if (code == CODE_RESOURCE_EXHAUSTED && !was_started(call))
        log_refusals(call, message, now);
}

/* ---- create and free ---- */

struct call *
call_new(struct conn *conn)
{
    struct server *server = conn->owner;
    struct call *call = blocks_alloc(&server->loop->blocks, sizeof *call + FIRST_BLOCK_BYTES);
    memset(call, 0, offsetof(struct call, mailbox));
    call->server = server;
    call->loop = server->loop;
    call->peer = peer_share(conn->peer);
    call->parent.account = call->peer->account;
    call->started_at = conn->last_read_at;
    request_init(&call->header);
    message_reader_init(&call->reader, NULL, server->options.max_message_bytes);
    call_set_budget(call, &call->peer->account->bytes);
    /*
     * A decoded message takes more memory than on the wire, but more than twice the limit is an
     * attack.
     */
    size_t limit = 2 * server->options.max_message_bytes;
    arena_init(&call->arena, call + 1, FIRST_BLOCK_BYTES, limit);
    arena_init(&call->wire_arena, NULL, 0, SIZE_MAX);
    arena_init(&call->message_arena, NULL, 0, limit);
    drain_add_call(&server->drain);
    return call;
}

static void
free_call(struct call *call)
{
    struct server *server = call->server;
    message_reader_clear(&call->reader);
    message_free(call->request, call->budget);
    budget_give_back(call->budget, call->raw_body.size);
    chunk_queue_clear(&call->raw_body);
    call_discharge(call, atomic_load(&call->out_charged));
    chunk_release(call->reply);
    error_free(call->result);
    if (call->has_mailbox)
        mailbox_clear(&call->mailbox, call->budget);
    field_block_release(&call->fields);
    budget_give_back(call->budget, call->header_charged);
    call_set_data(call, NULL, NULL);
    arena_clear(&call->arena);
    arena_clear(&call->wire_arena);
    arena_clear(&call->message_arena);
    charge_clear(&call->decoded);
    charge_clear(&call->message_decoded);
    peer_release(call->peer);
    blocks_free(&server->loop->blocks, call);
    drain_remove_call(&server->drain);
}

void
call_maybe_free(struct call *call)
{
    if (call->answer != ANSWER_GONE || call_is_running(call))
        return;
    assert(!call->cancelled && !call->parent.children);
    if (call->state != CALL_NEW) {
        call_metrics(call)->in_flight--;
        if (!call_is_streaming(call))
            lone_caller_end_call(&call->loop->lone);
    }
    free_call(call);
}
