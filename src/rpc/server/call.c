/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's call from the stream's side: what the client sends, and when the call is over. Answers are in call_reply.c, handlers in
 * call_run.c.
 *
 * LIFE. A call is made when its stream opens. It is freed on the loop thread when the stream is gone and no handler
 * runs; whichever comes last frees it. A handler whose client has gone goes on (CSI: that is no cancel) and its answer is dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/client/client_call_internal.h"
#include "rpc/grpc/grpc_text.h"
#include "rpc/server/call_internal.h"

#define FIRST_BLOCK_BYTES 1536
#define REFUSALS_NS 1000000000u

static struct call *
of_stream(struct stream *stream)
{
    return (struct call *)stream;
}

static void
set_budget(struct call *call, struct budget *budget)
{
    call->budget = call->reader.budget = budget;
    call->decoded.budget = call->message_decoded.budget = budget;
}

/* ---- the head ---- */

static void
on_deadline(struct timer *timer)
{
    struct call *call = CONTAINER_OF(timer, struct call, deadline);
    call_reply_status(call,
                      error_new(CODE_DEADLINE_EXCEEDED, "the deadline of the call has passed"));
    call_cancel(call);
}

static void
arm_deadline(struct call *call)
{
    if (!call->head.has_timeout)
        return;
    uint64_t left = call->head.timeout_ns;
    call->parent.deadline_at =
        left > UINT64_MAX - call->started_at ? UINT64_MAX : call->started_at + left;
    call->deadline.fire = on_deadline;
    if (call->parent.deadline_at <= timers_now())
        on_deadline(&call->deadline);
    else
        loop_arm(call->loop, &call->deadline, call->parent.deadline_at);
}

static bool
takes_stream(const struct call *call)
{
    return call->target && (call->target->method->kind == METHOD_CLIENT_STREAM ||
                            call->target->method->kind == METHOD_BIDI_STREAM);
}

static bool
sends_stream(const struct call *call)
{
    return call->target && (call->target->method->kind == METHOD_SERVER_STREAM ||
                            call->target->method->kind == METHOD_BIDI_STREAM);
}

/* What is wrong with a well-formed request before its body is read; NULL if nothing is. */
static struct error *
judge_head(struct call *call)
{
    if (call->head.bad_timeout)
        return error_new(CODE_INTERNAL,
                         "grpc-timeout is not a number of at most 8 digits with one of HMSmun");
    if (!call->target && !call->server->fallback.run)
        return error_new(CODE_UNIMPLEMENTED, "unknown method %s", call->head.path);
    return call->target ? metadata_decode_binary(&call->head.metadata, &call->arena) : NULL;
}

static struct method_metrics *
metrics_of(const struct call *call)
{
    return call->target ? call->target->metrics : call->server->unknown_metrics;
}

/* The client's code is the one that a reset stands for: so it is counted. */
static void
refuse_stream(struct call *call, uint32_t http2_error)
{
    if (call->is_begun && !call->is_answered)
        call_count(call, grpc_text_code_of_rst(http2_error), "the request breaks a rule of HTTP/2");
    call->is_answered = true;
    stream_reset(&call->stream, http2_error);
}

static void
set_target(struct call *call, struct server_method *target)
{
    call->target = target;
    call->scope.context = target ? target->context : call->server->fallback.context;
    call->scope.method = target ? target->method : NULL;
}

static struct error *
ask_guard(struct call *call)
{
    const struct guard *guard = &call->server->guard;
    bool to_fallback = false;
    if (!guard->judge)
        return NULL;
    struct error *error = guard->judge(call, guard->context, &to_fallback);
    if (!error && to_fallback)
        set_target(call, NULL);
    return error; /* cppcheck-suppress returnDanglingLifetime ; it holds no pointer to the answer */
}

static void
begin_call(struct call *call)
{
    set_target(call, server_find_method(call->server, call->head.path));
    struct error *error = ask_guard(call);
    call->is_begun = true;
    metrics_of(call)->in_flight++;
    if (!error)
        error = judge_head(call);
    if (error) {
        call_reply_status(call, error);
        return;
    }
    call->reader.encoding = call->head.encoding;
    arm_deadline(call);
    if (call->is_answered)
        return;
    if (takes_stream(call) || sends_stream(call)) {
        mailbox_init(&call->mailbox);
        call->has_mailbox = true;
    }
    if (takes_stream(call) || !call->target)
        call_run(call);
}

/* They are checked; nothing of them is kept. */
static void
on_trailers(struct call *call, const struct field_block *block, bool end_of_stream)
{
    request_read_fields(&call->head, &call->arena, block->fields, block->count);
    if (call->head.malformed || !end_of_stream)
        refuse_stream(call, NGHTTP2_PROTOCOL_ERROR);
}

static bool
has_reserve(const struct call *call, const struct field_block *block)
{
    const struct field *path = field_block_find(block, ":path", strlen(":path"));
    const struct server_method *method =
        path ? server_find_method(call->server, path->value) : NULL;
    return method && method->has_reserve;
}

/* A client that never ends its requests has the server keep the calls and their heads. */
static bool
charge_head(struct call *call, const struct field_block *block)
{
    size_t size = ADMISSION_CALL_BYTES + field_block_memory(block);
    bool fits = budget_take(call->budget, size);
    if (!fits && has_reserve(call, block)) {
        set_budget(call, &call->peer->account->reserve);
        fits = budget_take(call->budget, size);
    }
    call->head_charged = fits ? size : 0;
    return fits;
}

/* Who does not take the refusal either would have the server keep what it has refused. */
static void
refuse_call(struct call *call)
{
    call->head.in_trailers = true;
    call_reply_status(call,
                      error_new(CODE_RESOURCE_EXHAUSTED,
                                "too many bytes of requests wait in memory; try again later"));
    if (call->stream.conn->is_stuck)
        conn_kill(call->stream.conn, "the peer's requests are too many, and it takes no answers");
}

static void
on_headers(struct stream *stream, struct field_block *block, bool end_of_stream)
{
    struct call *call = of_stream(stream);
    if (call->head.in_trailers) {
        on_trailers(call, block, end_of_stream);
        return;
    }
    if (!charge_head(call, block)) {
        refuse_call(call);
        return;
    }
    bool too_large = block->bytes > block->max_bytes;
    field_block_keep(block, &call->fields, &call->arena);
    request_read_fields(&call->head, &call->arena, block->fields, block->count);
    if (!too_large)
        request_finish(&call->head);
    call->head.in_trailers = true;
    if (call->head.malformed) {
        refuse_stream(call, NGHTTP2_PROTOCOL_ERROR);
    } else if (too_large) {
        call_reply_status(call,
                          error_new(CODE_RESOURCE_EXHAUSTED,
                                    "the request's headers are larger than the limit of %u bytes",
                                    call->server->options.max_header_bytes));
    } else {
        /* No gRPC: the answer waits for the end of the request, as it does from other HTTP servers. */
        call->http_status = request_http_status(&call->head);
        if (!call->http_status)
            begin_call(call);
    }
}

/* ---- the body ---- */

static struct error *
take_message(struct call *call, struct message *message)
{
    if (takes_stream(call)) {
        mailbox_deliver(&call->mailbox, message);
        return NULL;
    }
    if (!call->request) {
        call->request = message;
        return NULL;
    }
    message_free(message, call->budget);
    return error_new(CODE_INTERNAL, "%s takes one message, and a second one came",
                     call->target->method->path);
}

static struct error *
feed_reader(struct call *call, const uint8_t *bytes, size_t size)
{
    while (size) {
        size_t taken;
        struct message *message;
        struct error *error = message_reader_feed(&call->reader, bytes, size, &taken, &message);
        if (!error && message)
            error = take_message(call, message);
        if (error)
            return error;
        bytes += taken;
        size -= taken;
    }
    return NULL;
}

void
call_credit(struct call *call)
{
    size_t held = takes_stream(call) ? mailbox_hold(&call->mailbox, call->uncredited,
                                                    message_reader_pending(&call->reader))
                                     : 0;
    stream_consume(&call->stream, call->uncredited - held);
    call->uncredited = held;
}

static struct error *
keep_raw(struct call *call, const uint8_t *bytes, size_t size)
{
    if (!budget_take(call->budget, size))
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "too many bytes of requests wait in memory; try again later");
    chunk_queue_append(&call->raw, &call->loop->blocks, bytes, size);
    return NULL;
}

static void
on_data(struct stream *stream, const uint8_t *bytes, size_t size)
{
    struct call *call = of_stream(stream);
    call->body_bytes += (int64_t)size;
    if (call->head.content_length >= 0 && call->body_bytes > call->head.content_length) {
        refuse_stream(call, NGHTTP2_PROTOCOL_ERROR);
        return;
    }
    if (call->is_answered || call->http_status) {
        stream_consume(stream, size);
        return;
    }
    struct error *error;
    if (call->target) {
        call->uncredited += size;
        error = feed_reader(call, bytes, size);
    } else {
        error = keep_raw(call, bytes, size);
    }
    if (error) {
        call_reply_status(call, error);
        call_cancel(call);
    }
    call_credit(call);
}

static void
on_ended(struct stream *stream)
{
    struct call *call = of_stream(stream);
    if (call->head.content_length >= 0 && call->body_bytes != call->head.content_length)
        refuse_stream(call, NGHTTP2_PROTOCOL_ERROR);
    else if (call->http_status)
        call_reply_http(call, call->http_status);
    if (call->is_answered || !call->target)
        return;
    struct error *error = message_reader_finish(&call->reader);
    if (!error && !takes_stream(call) && !call->request)
        error = error_new(CODE_INTERNAL, "%s takes a message, and none came",
                          call->target->method->path);
    if (error) {
        call_reply_status(call, error);
        call_cancel(call);
    } else if (takes_stream(call)) {
        mailbox_end_in(&call->mailbox);
    } else {
        call_run(call);
    }
}

static void
on_written(struct stream *stream, size_t size)
{
    struct call *call = of_stream(stream);
    if (call->http_status)
        return;
    call_reply_discharge(call, size);
    if (sends_stream(call))
        mailbox_note_written(&call->mailbox, size);
}

/* ---- the end ---- */

void
call_cancel(struct call *call)
{
    atomic_store_explicit(&call->parent.is_cancelled, true, memory_order_release);
    if (call->has_mailbox)
        mailbox_close(&call->mailbox);
    if (call->proxied)
        proxy_cancel(call->proxied);
    client_call_cancel_children(&call->parent);
    call_leave(call);
}

/* Of a method that takes a stream, and one that somebody else knows, the request may last as long as its client likes. */
void
call_end_if_late(struct stream *stream, uint64_t now, uint64_t limit_ns)
{
    struct call *call = of_stream(stream);
    bool may_last = call->is_begun && (!call->target || takes_stream(call));
    if (stream->in_ended || call->is_answered || may_last || now - call->started_at <= limit_ns)
        return;
    if (call->is_begun)
        call_reply_status(call, error_new(CODE_DEADLINE_EXCEEDED,
                                          "the request is not complete after %u s",
                                          (unsigned)(limit_ns / 1000000000u)));
    else
        stream_reset(stream, NGHTTP2_CANCEL);
}

/* A flood of requests that are refused, or never come as a whole, is no flood of lines. */
static enum log_level
level_of(const struct call *call, enum code code)
{
    if (code == CODE_INTERNAL || code == CODE_UNKNOWN || code == CODE_DATA_LOSS)
        return LOG_WARN;
    bool is_nothing =
        !call->was_started && (code == CODE_RESOURCE_EXHAUSTED || code == CODE_CANCELLED ||
                               (code == CODE_DEADLINE_EXCEEDED && !call->stream.in_ended));
    return is_nothing ? LOG_DEBUG : LOG_INFO;
}

/* What is refused is told once a second, all together. */
static void
log_refusals(const struct call *call, const char *message, uint64_t now)
{
    struct admission *admission = &call->loop->admission;
    admission->refusals++;
    if (now - admission->refusals_told_at < REFUSALS_NS)
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
        LOG_LATER(log, level, "call", LOG_TEXT("method", call->head.path),
                  LOG_TEXT("peer", call->peer->address), LOG_TEXT("code", error_code_name(code)),
                  LOG_NUMBER("us", nanoseconds / 1000), LOG_TEXT("error", message));
    else
        LOG_LATER(log, level, "call", LOG_TEXT("method", call->head.path),
                  LOG_TEXT("peer", call->peer->address), LOG_TEXT("code", error_code_name(code)),
                  LOG_NUMBER("us", nanoseconds / 1000));
}

void
call_count(struct call *call, enum code code, const char *message)
{
    call_count_at(call, code, message, timers_now());
}

void
call_count_at(struct call *call, enum code code, const char *message, uint64_t now)
{
    if (call->is_counted)
        return;
    call->is_counted = true;
    uint64_t nanoseconds = now - call->started_at;
    metrics_count_call(metrics_of(call), code, nanoseconds);
    log_call(call, code, message, nanoseconds);
    if (code == CODE_RESOURCE_EXHAUSTED && !call->was_started)
        log_refusals(call, message, now);
}

static void
on_closed(struct stream *stream, uint32_t http2_error, const char *why)
{
    (void)http2_error;
    struct call *call = of_stream(stream);
    loop_disarm(call->loop, &call->deadline);
    if (!call->is_answered && call->is_begun)
        call_count(call, CODE_CANCELLED, why);
    call->is_answered = true;
    call_cancel(call);
    /* Only now: a relayed call comes back within call_cancel, and must not be freed there. */
    call->is_over = true;
    call_maybe_free(call);
}

void
call_maybe_free(struct call *call)
{
    if (!call->is_over || call->is_running)
        return;
    struct server *server = call->server;
    if (call->is_begun)
        metrics_of(call)->in_flight--;
    message_reader_clear(&call->reader);
    message_free(call->request, call->budget);
    budget_give_back(call->budget, call->raw.size);
    chunk_queue_clear(&call->raw);
    call_reply_discharge(call, atomic_load(&call->out_charged));
    chunk_release(call->reply);
    error_free(call->result);
    if (call->has_mailbox)
        mailbox_clear(&call->mailbox, call->budget);
    field_block_release(&call->fields);
    budget_give_back(call->budget, call->head_charged);
    arena_clear(&call->arena);
    arena_clear(&call->wire_arena);
    arena_clear(&call->message_arena);
    charge_clear(&call->decoded);
    charge_clear(&call->message_decoded);
    peer_release(call->peer);
    blocks_free(&server->loop->blocks, call);
    server_note_call_freed(server);
}

static const struct stream_events call_events = {
    .headers = on_headers,
    .data = on_data,
    .ended = on_ended,
    .written = on_written,
    .closed = on_closed,
};

struct stream *
call_open(struct conn *conn, int32_t id)
{
    (void)id;
    struct server *server = conn->owner;
    struct call *call = blocks_alloc(&server->loop->blocks, sizeof *call + FIRST_BLOCK_BYTES);
    memset(call, 0, offsetof(struct call, mailbox));
    call->stream.events = &call_events;
    call->server = server;
    call->loop = server->loop;
    call->peer = peer_share(conn->peer);
    call->parent.account = call->peer->account;
    call->started_at = conn->last_read_at;
    request_init(&call->head);
    message_reader_init(&call->reader, NULL, server->options.max_message_bytes);
    set_budget(call, &call->peer->account->bytes);
    /* Decoded, a message takes more room than on the wire; beyond twice its limit it is an attack. */
    size_t limit = 2 * server->options.max_message_bytes;
    arena_init(&call->arena, call + 1, FIRST_BLOCK_BYTES, limit);
    arena_init(&call->wire_arena, NULL, 0, SIZE_MAX);
    arena_init(&call->message_arena, NULL, 0, limit);
    server->call_count++;
    if (++server->loop->open_calls > 1)
        lookout_note_company(&server->loop->lookout);
    return &call->stream;
}

/* ---- what handlers ask ---- */

void *
call_context(const struct call *call)
{
    return call->scope.context;
}

struct arena *
call_arena(struct call *call)
{
    return &call->arena;
}

const char *
call_path(const struct call *call)
{
    return call->scope.method ? call->scope.method->path : call->head.path;
}

const struct method *
call_method(const struct call *call)
{
    return call->target ? call->target->method : NULL;
}

void
call_keep(struct call *call, void *kept)
{
    call->kept = kept;
}

void *
call_kept(const struct call *call)
{
    return call->kept;
}

const struct peer *
call_peer(const struct call *call)
{
    return call->peer;
}

const struct metadata *
call_metadata(const struct call *call)
{
    return &call->head.metadata;
}

void
call_add_field(struct call *call, const char *key, const char *value)
{
    metadata_add_bytes(&call->head.metadata, &call->arena, key, strlen(key), value, strlen(value));
}

bool
call_is_cancelled(const struct call *call)
{
    /* A server's call is cancelled by the timer of its deadline, which has answered the client first. */
    return atomic_load_explicit(&call->parent.is_cancelled, memory_order_acquire) ||
           (!call->server && call_time_left(call) == 0);
}

struct parent_call *
call_as_parent(struct call *call)
{
    return call ? &call->parent : NULL;
}

uint64_t
call_time_left(const struct call *call)
{
    if (!call->parent.deadline_at)
        return UINT64_MAX;
    uint64_t now = timers_now();
    return call->parent.deadline_at > now ? call->parent.deadline_at - now : 0;
}
