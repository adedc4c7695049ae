/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's side of calls to a server: see client_call_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/client/client_call_internal.h"
#include "rpc/client/request_fields.h"

#define MAX_ATTEMPTS 3
#define FIRST_BLOCK_BYTES 1024

static struct client_call *
of_stream(struct stream *stream)
{
    return (struct client_call *)stream;
}

void
client_call_release(struct client_call *call)
{
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) != 1)
        return;
    /* The analyzer ignores the reference count. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    mailbox_clear(&call->mailbox, &call->account->bytes);
    message_reader_clear(&call->reader);
    charge_clear(&call->decoded);
    chunk_queue_clear(&call->stream.out);
    response_clear(&call->response);
    arena_clear(&call->arena);
    error_free(call->result);
    account_release(call->account);
    free(call);
}

/* ---- completion ---- */

static void
remove_from_parent(struct client_call *call)
{
    if (!call->child_link)
        return;
    *call->child_link = call->next_child;
    if (call->next_child)
        call->next_child->child_link = call->child_link;
    call->child_link = NULL;
}

/* Takes over the error. The stream may outlive this, but its events no longer reach the caller. */
static void
finish(struct client_call *call, struct error *error)
{
    if (call->is_finished) {
        error_free(error);
        return;
    }
    call->is_finished = true;
    call->result = error;
    loop_disarm(call->loop, &call->deadline);
    remove_from_parent(call);
    channel_stop_waiting(&call->waiter);
    /* on the loop: the connection may hold a reference too */
    chunk_release(STEAL(call->single_message));
    struct channel *channel = STEAL(call->channel);
    bool has_stream = call->stream.conn != NULL;
    if (has_stream && !(call->stream.in_ended && stream_is_sent(&call->stream)))
        stream_reset(&call->stream, NGHTTP2_CANCEL);
    mailbox_close(&call->mailbox);
    if (call->finished)
        call->finished(call);
    if (!has_stream)
        client_call_release(call);
    channel_release(channel);
}

/* Adds method and target to an error that the server did not send itself. Takes over the error. */
static struct error *
add_context(const struct client_call *call, struct error *error)
{
    return error_wrap(error, "%s to %s", call->method->path, call->target);
}

static struct error *
deadline_error(const struct client_call *call)
{
    return add_context(call, error_new(CODE_DEADLINE_EXCEEDED, "no answer before the deadline"));
}

static void
on_deadline(struct timer *timer)
{
    struct client_call *call = CONTAINER_OF(timer, struct client_call, deadline);
    finish(call, deadline_error(call));
}

void
client_call_end_cancelled(struct client_call *call)
{
    if (call->deadline_at && call->deadline_at <= timers_now())
        finish(call, deadline_error(call));
    else
        finish(call, error_new(CODE_CANCELLED, "%s: the call was cancelled", call->method->path));
}

void
client_call_cancel_children(struct parent_call *parent)
{
    struct client_call *child = parent->children;
    while (child) {
        struct client_call *next = child->next_child;
        client_call_end_cancelled(child);
        child = next;
    }
}

/* ---- response ---- */

static void
on_headers(struct stream *stream, struct field_block *block, bool end_of_stream)
{
    (void)end_of_stream;
    struct client_call *call = of_stream(stream);
    call->header_bytes += block->bytes;
    if (!call->is_finished && call->header_bytes <= RESPONSE_MAX_HEADER_BYTES)
        for (size_t i = 0; i < block->count; i++)
            response_add_field(&call->response, &call->arena, &block->fields[i]);
    if (call->header_bytes > RESPONSE_MAX_HEADER_BYTES)
        finish(call, add_context(call, error_new(CODE_RESOURCE_EXHAUSTED,
                                                 "the response headers are too large")));
    else if (!call->is_finished && response_end_block(&call->response, &call->arena))
        call->reader.encoding = call->response.encoding;
}

static struct error *
feed_reader(struct client_call *call, const uint8_t *bytes, size_t size)
{
    while (size) {
        size_t taken;
        struct message *message;
        struct error *error = message_reader_feed(&call->reader, bytes, size, &taken, &message);
        if (error)
            return error;
        if (call->has_reply && !method_is_server_streaming(call->method)) {
            message_free(message, &call->account->bytes);
            return error_new(CODE_INTERNAL, "received more than one message");
        }
        if (message) {
            call->has_reply = true;
            mailbox_deliver(&call->mailbox, message);
        }
        bytes += taken;
        size -= taken;
    }
    return NULL;
}

void
client_call_credit(struct client_call *call)
{
    size_t held =
        mailbox_hold(&call->mailbox, call->uncredited, message_reader_pending(&call->reader));
    stream_consume(&call->stream, call->uncredited - held);
    call->uncredited = held;
}

static bool
is_readable_body(const struct client_call *call)
{
    return !call->is_finished && call->response.http_status == 200 && call->response.is_grpc;
}

static void
on_data(struct stream *stream, const uint8_t *bytes, size_t size)
{
    struct client_call *call = of_stream(stream);
    if (!is_readable_body(call)) {
        stream_consume(stream, size);
        return;
    }
    call->uncredited += size;
    struct error *error = feed_reader(call, bytes, size);
    if (error)
        finish(call, add_context(call, error_wrap(error, "the server's answer")));
    else
        client_call_credit(call);
}

static void
on_written(struct stream *stream, size_t size)
{
    struct client_call *call = of_stream(stream);
    if (!call->has_single_message && size)
        mailbox_note_written(&call->mailbox, size);
}

/* gRPC allows a transparent retry if the server has certainly not processed the call. */
static bool
may_retry(const struct client_call *call, uint32_t http2_error)
{
    return !call->is_finished && call->single_message && !call->response.saw_header &&
           call->attempts < MAX_ATTEMPTS &&
           (http2_error == NGHTTP2_REFUSED_STREAM || call->stream.never_sent);
}

static struct error *
final_status(const struct client_call *call, uint32_t http2_error, const char *why)
{
    if (http2_error == STREAM_CONNECTION_LOST && !call->response.saw_status) {
        struct error *lost = error_new(CODE_UNAVAILABLE, "%s: %s", call->target, why);
        lost->in_doubt = !call->stream.never_sent;
        return lost;
    }
    if (channel_is_deadline(http2_error, call->deadline_at) && !call->response.saw_status)
        return deadline_error(call);
    if (call->stream.headers_too_large)
        return add_context(call, error_new(CODE_RESOURCE_EXHAUSTED, "%s", why));
    struct error *error = response_status(&call->response, http2_error, why);
    if (error && call->response.saw_status && !call->response.is_invalid_status)
        return error;
    return add_context(call, error ? error : message_reader_finish(&call->reader));
}

/* The server has ended its side: the call is over, even if this side has more to send. */
static void
on_ended(struct stream *stream)
{
    struct client_call *call = of_stream(stream);
    if (call->is_finished)
        return;
    mailbox_end_in(&call->mailbox);
    finish(call, final_status(call, NGHTTP2_NO_ERROR, NULL));
}

static void
on_closed(struct stream *stream, uint32_t http2_error, const char *why)
{
    struct client_call *call = of_stream(stream);
    if (may_retry(call, http2_error)) {
        stream->in_ended = stream->out_ended = stream->is_sent = false;
        stream->waits_for_data = stream->never_sent = stream->is_reset = false;
        channel_request_conn(call->channel, &call->waiter);
        return;
    }
    if (call->is_finished)
        client_call_release(call);
    else
        finish(call, final_status(call, http2_error, why));
}

static const struct stream_events client_call_events = {
    .headers = on_headers,
    .data = on_data,
    .ended = on_ended,
    .written = on_written,
    .closed = on_closed,
};

/* ---- start ---- */

static void
begin(struct waiter *waiter, struct conn *conn)
{
    struct client_call *call = CONTAINER_OF(waiter, struct client_call, waiter);
    struct request_fields fields;
    request_fields_begin(&fields, &call->arena, call->channel, call->method->path,
                         call->metadata.count);
    request_fields_add_grpc(&fields);
    request_fields_add_timeout(&fields, call->deadline_at);
    request_fields_add_metadata(&fields, &call->metadata);
    call->attempts++;
    struct error *error = stream_begin_request(&call->stream, conn, fields.items, fields.count);
    if (error) {
        finish(call, error);
        return;
    }
    if (call->single_message) {
        call->single_message->references++;
        stream_push(&call->stream, call->single_message);
        stream_end(&call->stream, NULL, 0);
    } else if (mailbox_collect(&call->mailbox, &call->stream.out)) {
        stream_end(&call->stream, NULL, 0);
    }
}

static void
fail_to_begin(struct waiter *waiter, struct error *error)
{
    finish(CONTAINER_OF(waiter, struct client_call, waiter), error);
}

static void
add_to_parent(struct client_call *call)
{
    struct parent_call *parent = call->parent;
    if (!parent)
        return;
    if (parent->deadline_at && (!call->deadline_at || parent->deadline_at < call->deadline_at))
        call->deadline_at = parent->deadline_at;
    call->next_child = parent->children;
    if (call->next_child)
        call->next_child->child_link = &call->next_child;
    call->child_link = &parent->children;
    parent->children = call;
}

static bool
is_over(const struct client_call *call)
{
    return (call->deadline_at && call->deadline_at <= timers_now()) ||
           (call->parent &&
            atomic_load_explicit(&call->parent->is_cancelled, memory_order_acquire));
}

void
client_call_start(struct client_call *call)
{
    add_to_parent(call);
    if (is_over(call)) {
        client_call_end_cancelled(call);
        return;
    }
    if (call->deadline_at)
        loop_arm(call->loop, &call->deadline, call->deadline_at);
    channel_request_conn(call->channel, &call->waiter);
}

static void
start_by_task(struct task *task)
{
    client_call_start(CONTAINER_OF(task, struct client_call, start));
}

struct client_call *
client_call_new(struct channel *channel, const struct method *method,
                const struct call_options *options)
{
    struct client_call *call = memory_new(sizeof *call + FIRST_BLOCK_BYTES);
    memset(call, 0, sizeof *call);
    atomic_init(&call->references, 2);
    call->stream.events = &client_call_events;
    call->channel = channel_share(channel);
    call->loop = channel->loop;
    call->method = method;
    call->parent = options->parent;
    call->account = account_share(call->parent ? call->parent->account : call->loop->admission.own);
    call->waiter.wait_for_ready = options->wait_for_ready;
    call->waiter.ready = begin;
    call->waiter.failed = fail_to_begin;
    call->deadline.fire = on_deadline;
    if (options->timeout_ns)
        call->deadline_at = options->timeout_ns > UINT64_MAX - timers_now()
                                ? 0
                                : timers_now() + options->timeout_ns;
    arena_init(&call->arena, call + 1, FIRST_BLOCK_BYTES, SIZE_MAX);
    call->target = arena_string(&call->arena, channel->target);
    if (options->metadata)
        for (struct metadata_entry *e = options->metadata->first; e; e = e->next)
            metadata_add_bytes(&call->metadata, &call->arena, e->key, e->key_size, e->value,
                               e->value_size);
    call->decoded = (struct charge){&call->account->bytes, 0, ADMISSION_WORK_BYTES};
    message_reader_init(&call->reader, &call->account->bytes, channel->max_message_bytes);
    mailbox_init(&call->mailbox);
    call->start.run = start_by_task;
    return call;
}

void
client_call_set_message(struct client_call *call, struct chunk *message)
{
    call->single_message = message;
    call->has_single_message = true;
}

/* ---- reply ---- */

struct error *
client_call_unpack(const struct client_call *call, struct message *message, struct arena *arena,
                   struct charge *charge, ProtobufCMessage **out)
{
    struct budget *budget = &call->account->bytes;
    *out = NULL;
    struct error *error = message_inflate(&message, budget, call->reader.max_message_bytes);
    if (!error)
        error = framing_unpack(call->method->output, message, arena, charge, out);
    message_free(message, budget);
    /* The server sent it: the caller's argument is not at fault. */
    if (error && error->code == CODE_INVALID_ARGUMENT)
        error->code = CODE_INTERNAL;
    return add_context(call, error_wrap(error, "the server's answer"));
}

struct error *
client_call_take_reply(struct client_call *call, struct arena *arena, struct charge *charge,
                       void *reply)
{
    bool notify;
    ProtobufCMessage *decoded = NULL;
    struct message *message = mailbox_take(&call->mailbox, &notify);
    struct message *second = message ? mailbox_take(&call->mailbox, &notify) : NULL;
    struct error *error = NULL;
    if (!message)
        error =
            add_context(call, error_new(CODE_INTERNAL, "the server answered OK without a message"));
    else if (second)
        error = add_context(
            call, error_new(CODE_INTERNAL, "the server answered with more than one message"));
    else
        error = client_call_unpack(call, STEAL(message), arena, charge, &decoded);
    message_free(message, &call->account->bytes);
    message_free(second, &call->account->bytes);
    memcpy(reply, &decoded, sizeof decoded);
    return error;
}
