/* SPDX-License-Identifier: Apache-2.0 */
/* Receives a request: header, messages, end. See call_internal.h. */
#include <string.h>

#include "rpc/server/call_internal.h"

static struct call *
of_stream(struct stream *stream)
{
    return (struct call *)stream;
}

static struct error *
too_many_bytes(void)
{
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "the memory limit for buffered requests is reached; try again later");
}

/* ---- deadline ---- */

static void
on_deadline(struct timer *timer)
{
    struct call *call = CONTAINER_OF(timer, struct call, deadline);
    call_reply_status(call, error_new(CODE_DEADLINE_EXCEEDED, "the call's deadline has passed"));
    call_cancel(call);
}

static void
arm_deadline(struct call *call)
{
    if (!call->header.has_timeout)
        return;
    uint64_t left = call->header.timeout_ns;
    call->parent.deadline_at =
        left > UINT64_MAX - call->started_at ? UINT64_MAX : call->started_at + left;
    call->deadline.fire = on_deadline;
    if (call->parent.deadline_at <= timers_now())
        on_deadline(&call->deadline);
    else
        loop_arm(call->loop, &call->deadline, call->parent.deadline_at);
}

/* Methods that receive a stream, or are known only to the server behind a proxy, have no limit. */
void
call_end_if_late(struct stream *stream, uint64_t now, uint64_t limit_ns)
{
    struct call *call = of_stream(stream);
    bool is_call = call->state != CALL_NEW;
    bool may_last = is_call && (!call->target || call_takes_stream(call));
    if (stream->in_ended || call->answer >= ANSWER_ENDED || may_last ||
        now - call->started_at <= limit_ns)
        return;
    if (is_call)
        call_reply_status(call,
                          error_new(CODE_DEADLINE_EXCEEDED, "the request is incomplete after %u s",
                                    (unsigned)(limit_ns / 1000000000u)));
    else
        stream_reset(stream, NGHTTP2_CANCEL);
}

/* ---- header ---- */

static void
set_target(struct call *call, struct server_method *target)
{
    call->target = target;
    call->scope.context = target ? target->context : call->server->fallback.context;
    call->scope.method = target ? target->method : NULL;
}

static struct error *
run_guard(struct call *call)
{
    const struct guard *guard = &call->server->guard;
    bool to_fallback = false;
    if (!guard->check)
        return NULL;
    struct error *error = guard->check(call, guard->context, &to_fallback);
    if (!error && to_fallback)
        set_target(call, NULL);
    return error;
}

/* Checks a well-formed request before its body is read; returns NULL if it is valid. */
static struct error *
check_header(struct call *call)
{
    if (call->header.bad_timeout)
        return error_new(CODE_INTERNAL,
                         "grpc-timeout must be at most 8 digits followed by H, M, S, m, u or n");
    if (!call->target && !call->server->fallback.run)
        return error_new(CODE_UNIMPLEMENTED, "unknown method %s", call->header.path);
    return call->target ? metadata_decode_binary(&call->header.metadata, &call->arena) : NULL;
}

static void
open_call(struct call *call)
{
    set_target(call, methods_find(&call->server->methods, call->header.path));
    struct error *error = run_guard(call);
    call->state = CALL_OPEN;
    call_metrics(call)->in_flight++;
    if (!call_is_streaming(call))
        lone_caller_begin_call(&call->loop->lone);
    if (!error)
        error = check_header(call);
    if (error) {
        call_reply_status(call, error);
        return;
    }
    call->reader.encoding = call->header.encoding;
    arm_deadline(call);
    if (call->answer >= ANSWER_ENDED)
        return;
    if (call_is_streaming(call)) {
        mailbox_init(&call->mailbox);
        call->has_mailbox = true;
    }
    if (call_takes_stream(call) || !call->target)
        call_run(call);
}

static bool
has_reserve(const struct call *call, const struct field_block *block)
{
    const struct field *path = field_block_find(block, ":path", strlen(":path"));
    const struct server_method *method =
        path ? methods_find(&call->server->methods, path->value) : NULL;
    return method && method->has_reserve;
}

/* Charged because a client that never ends its requests makes the server keep calls and headers. */
static bool
charge_header(struct call *call, const struct field_block *block)
{
    size_t size = ADMISSION_CALL_BYTES + field_block_memory(block);
    bool fits = budget_take(call->budget, size);
    if (!fits && has_reserve(call, block)) {
        call_set_budget(call, &call->peer->account->reserve);
        fits = budget_take(call->budget, size);
    }
    call->header_charged = fits ? size : 0;
    return fits;
}

/* If the client does not read the refusal either, the server would have to buffer it. */
static void
refuse_call(struct call *call)
{
    call->header.in_trailers = true;
    call_reply_status(call, too_many_bytes());
    if (call->stream.conn->is_write_blocked)
        conn_kill(call->stream.conn,
                  "the peer sends too many requests and does not read the answers");
}

/* Validates trailers; nothing of them is kept. */
static void
on_trailers(struct call *call, const struct field_block *block, bool end_of_stream)
{
    request_read_fields(&call->header, &call->arena, block->fields, block->count);
    if (call->header.malformed || !end_of_stream)
        call_reset_malformed(call);
}

static void
on_header(struct call *call, struct field_block *block)
{
    bool too_large = block->bytes > block->max_bytes;
    field_block_keep(block, &call->fields, &call->arena);
    request_read_fields(&call->header, &call->arena, block->fields, block->count);
    if (!too_large)
        request_finish(&call->header);
    call->header.in_trailers = true;
    if (call->header.malformed) {
        call_reset_malformed(call);
    } else if (too_large) {
        call_reply_status(call,
                          error_new(CODE_RESOURCE_EXHAUSTED,
                                    "the request's headers are larger than the limit of %u bytes",
                                    call->server->options.max_header_bytes));
    } else {
        /* A request that is not gRPC is answered at its end, as other HTTP servers do. */
        call->http_status = request_http_status(&call->header);
        if (!call->http_status)
            open_call(call);
    }
}

static void
on_headers(struct stream *stream, struct field_block *block, bool end_of_stream)
{
    struct call *call = of_stream(stream);
    if (call->header.in_trailers)
        on_trailers(call, block, end_of_stream);
    else if (charge_header(call, block))
        on_header(call, block);
    else
        refuse_call(call);
}

/* ---- body ---- */

static struct error *
take_message(struct call *call, struct message *message)
{
    if (call_takes_stream(call)) {
        mailbox_deliver(&call->mailbox, message);
        return NULL;
    }
    if (!call->request) {
        call->request = message;
        return NULL;
    }
    message_free(message, call->budget);
    return error_new(CODE_INTERNAL, "%s takes one message, but received a second one",
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

static struct error *
keep_raw(struct call *call, const uint8_t *bytes, size_t size)
{
    if (!budget_take(call->budget, size))
        return too_many_bytes();
    chunk_queue_append(&call->raw_body, &call->loop->blocks, bytes, size);
    return NULL;
}

static void
on_data(struct stream *stream, const uint8_t *bytes, size_t size)
{
    struct call *call = of_stream(stream);
    call->body_bytes += (int64_t)size;
    if (call->header.content_length >= 0 && call->body_bytes > call->header.content_length) {
        call_reset_malformed(call);
        return;
    }
    if (call->answer >= ANSWER_ENDED || call->http_status) {
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

static struct error *
check_end(const struct call *call)
{
    struct error *error = message_reader_finish(&call->reader);
    if (!error && !call_takes_stream(call) && !call->request)
        error = error_new(CODE_INTERNAL, "%s takes a message, but received none",
                          call->target->method->path);
    return error;
}

static void
on_ended(struct stream *stream)
{
    struct call *call = of_stream(stream);
    if (call->header.content_length >= 0 && call->body_bytes != call->header.content_length)
        call_reset_malformed(call);
    else if (call->http_status)
        call_reply_http(call, call->http_status);
    if (call->answer >= ANSWER_ENDED || !call->target)
        return;
    struct error *error = check_end(call);
    if (error) {
        call_reply_status(call, error);
        call_cancel(call);
    } else if (call_takes_stream(call)) {
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
    call_discharge(call, size);
    if (call_sends_stream(call))
        mailbox_note_written(&call->mailbox, size);
}

/* ---- end of the stream ---- */

static void
on_closed(struct stream *stream, uint32_t http2_error, const char *why)
{
    (void)http2_error;
    struct call *call = of_stream(stream);
    if (call_end_answer(call) && call->state != CALL_NEW)
        call_count(call, CODE_CANCELLED, why, timers_now());
    call_cancel(call);
    /* Only now: call_cancel may finish a relayed call, which must not free it yet. */
    call->answer = ANSWER_GONE;
    call_maybe_free(call);
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
    struct call *call = call_new(conn);
    call->stream.events = &call_events;
    return &call->stream;
}
