/* SPDX-License-Identifier: Apache-2.0 */
/* A call as its client sends it: header, messages, end. See call_internal.h. */
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

/* ---- the deadline ---- */

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

/* A method that takes a stream, or that only the server behind a proxy knows, may take its time. */
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
        call_reply_status(call, error_new(CODE_DEADLINE_EXCEEDED,
                                          "the request is not complete after %u s",
                                          (unsigned)(limit_ns / 1000000000u)));
    else
        stream_reset(stream, NGHTTP2_CANCEL);
}

/* ---- the header ---- */

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

/* What is wrong with a well-formed request before its body is read; NULL if nothing is. */
static struct error *
check_head(struct call *call)
{
    if (call->head.bad_timeout)
        return error_new(CODE_INTERNAL,
                         "grpc-timeout is not a number of at most 8 digits with one of HMSmun");
    if (!call->target && !call->server->fallback.run)
        return error_new(CODE_UNIMPLEMENTED, "unknown method %s", call->head.path);
    return call->target ? metadata_decode_binary(&call->head.metadata, &call->arena) : NULL;
}

static void
open_call(struct call *call)
{
    set_target(call, methods_find(&call->server->methods, call->head.path));
    struct error *error = ask_guard(call);
    call->state = CALL_OPEN;
    call_metrics(call)->in_flight++;
    if (!call_is_streaming(call))
        lone_caller_begin_call(&call->loop->lone);
    if (!error)
        error = check_head(call);
    if (error) {
        call_reply_status(call, error);
        return;
    }
    call->reader.encoding = call->head.encoding;
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

/* A client that never ends its requests makes the server keep the calls and their headers. */
static bool
charge_head(struct call *call, const struct field_block *block)
{
    size_t size = ADMISSION_CALL_BYTES + field_block_memory(block);
    bool fits = budget_take(call->budget, size);
    if (!fits && has_reserve(call, block)) {
        call_set_budget(call, &call->peer->account->reserve);
        fits = budget_take(call->budget, size);
    }
    call->head_charged = fits ? size : 0;
    return fits;
}

/* A client that does not read the refusal either would make the server keep it. */
static void
refuse_call(struct call *call)
{
    call->head.in_trailers = true;
    call_reply_status(call, too_many_bytes());
    if (call->stream.conn->is_write_blocked)
        conn_kill(call->stream.conn, "the peer's requests are too many, and it takes no answers");
}

/* Trailers are checked; nothing of them is kept. */
static void
on_trailers(struct call *call, const struct field_block *block, bool end_of_stream)
{
    request_read_fields(&call->head, &call->arena, block->fields, block->count);
    if (call->head.malformed || !end_of_stream)
        call_reset_malformed(call);
}

static void
on_head(struct call *call, struct field_block *block)
{
    bool too_large = block->bytes > block->max_bytes;
    field_block_keep(block, &call->fields, &call->arena);
    request_read_fields(&call->head, &call->arena, block->fields, block->count);
    if (!too_large)
        request_finish(&call->head);
    call->head.in_trailers = true;
    if (call->head.malformed) {
        call_reset_malformed(call);
    } else if (too_large) {
        call_reply_status(call,
                          error_new(CODE_RESOURCE_EXHAUSTED,
                                    "the request's headers are larger than the limit of %u bytes",
                                    call->server->options.max_header_bytes));
    } else {
        /* A request that is no gRPC is answered at its end, as other HTTP servers do it. */
        call->http_status = request_http_status(&call->head);
        if (!call->http_status)
            open_call(call);
    }
}

static void
on_headers(struct stream *stream, struct field_block *block, bool end_of_stream)
{
    struct call *call = of_stream(stream);
    if (call->head.in_trailers)
        on_trailers(call, block, end_of_stream);
    else if (charge_head(call, block))
        on_head(call, block);
    else
        refuse_call(call);
}

/* ---- the body ---- */

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

static struct error *
keep_raw(struct call *call, const uint8_t *bytes, size_t size)
{
    if (!budget_take(call->budget, size))
        return too_many_bytes();
    chunk_queue_append(&call->raw, &call->loop->blocks, bytes, size);
    return NULL;
}

static void
on_data(struct stream *stream, const uint8_t *bytes, size_t size)
{
    struct call *call = of_stream(stream);
    call->body_bytes += (int64_t)size;
    if (call->head.content_length >= 0 && call->body_bytes > call->head.content_length) {
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
        error = error_new(CODE_INTERNAL, "%s takes a message, and none came",
                          call->target->method->path);
    return error;
}

static void
on_ended(struct stream *stream)
{
    struct call *call = of_stream(stream);
    if (call->head.content_length >= 0 && call->body_bytes != call->head.content_length)
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

/* ---- the stream ---- */

static void
on_closed(struct stream *stream, uint32_t http2_error, const char *why)
{
    (void)http2_error;
    struct call *call = of_stream(stream);
    if (call_end_answer(call) && call->state != CALL_NEW)
        call_count(call, CODE_CANCELLED, why, timers_now());
    call_cancel(call);
    /* Only now: a relayed call comes back within call_cancel, and must not be freed there. */
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
