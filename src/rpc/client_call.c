/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call to a server: see channel.h.
 *
 * LIFE. Two hold a call: the thread that made it and the loop, which needs it until the HTTP/2 stream is gone, maybe longer than the
 * thread waits (a deadline that passes). Who lets go last frees it. Until client_call_start the thread owns all fields; then the loop
 * does, until it closes the mailbox; from there on they do not change.
 */
#include "rpc/client_call.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/call_internal.h"
#include "rpc/channel_internal.h"
#include "rpc/request_fields.h"
#include "rpc/response.h"

#define MAX_ATTEMPTS 3
#define MAX_HEADER_BYTES (64u << 10)
#define FIELD_OVERHEAD 32

struct client_call {
    struct stream stream; /* first */
    struct waiter waiter;
    atomic_uint references;
    struct channel *channel;
    struct loop *loop;
    const struct method *method;
    struct metadata metadata; /* of the request */
    struct arena arena;       /* the loop's, once started: fields, answers */
    struct call *parent;
    struct client_call *next_child;
    struct client_call **child_link;
    uint64_t deadline_at; /* 0: none */
    struct timer deadline;
    struct chunk *only_message; /* of a request with one message: kept for another attempt */
    bool has_only_message;
    unsigned attempts;
    bool is_finished;
    bool has_reply; /* a message of the server's has come */
    atomic_bool cancel_asked;
    size_t header_bytes;
    struct message_reader reader;
    size_t uncredited;
    struct mailbox mailbox;
    struct response response;
    struct error *result; /* once finished; NULL: OK */
    struct task start;
    struct task news;
    struct task cancel;
};

static struct client_call *
of_stream(struct stream *stream)
{
    return (struct client_call *)stream;
}

static void
release(struct client_call *call)
{
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) != 1)
        return;
    /* The analyzer does not count references. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    mailbox_clear(&call->mailbox, &call->loop->budget);
    message_reader_clear(&call->reader);
    chunk_queue_clear(&call->stream.out);
    response_clear(&call->response);
    arena_clear(&call->arena);
    error_free(call->result);
    free(call);
}

/* ---- the end ---- */

static void
leave_parent(struct client_call *call)
{
    if (!call->child_link)
        return;
    *call->child_link = call->next_child;
    if (call->next_child)
        call->next_child->child_link = call->child_link;
    call->child_link = NULL;
}

/* Takes the error. The stream may live on for a while; nothing of it reaches the caller any more. */
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
    leave_parent(call);
    channel_stop_waiting(&call->waiter);
    chunk_release(STEAL(call->only_message)); /* here, because the connection may hold it too */
    struct channel *channel = STEAL(call->channel);
    bool has_stream = call->stream.conn != NULL;
    if (has_stream && !(call->stream.in_ended && stream_is_sent(&call->stream)))
        stream_reset(&call->stream, NGHTTP2_CANCEL);
    mailbox_close(&call->mailbox);
    if (!has_stream)
        release(call);
    channel_release(channel);
}

static struct error *
deadline_error(const struct client_call *call)
{
    return error_new(CODE_DEADLINE_EXCEEDED, "%s to %s: no answer before the deadline",
                     call->method->path, call->channel->target);
}

static void
on_deadline(struct timer *timer)
{
    struct client_call *call = CONTAINER_OF(timer, struct client_call, deadline);
    finish(call, deadline_error(call));
}

static void
finish_cancelled(struct client_call *call)
{
    finish(call, error_new(CODE_CANCELLED, "%s: the call was cancelled", call->method->path));
}

void
client_call_cancel_children(struct call *parent)
{
    struct client_call *child = parent->children;
    while (child) {
        struct client_call *next = child->next_child;
        finish_cancelled(child);
        child = next;
    }
}

/* ---- the answer ---- */

static void
on_header(struct stream *stream, const char *name, size_t name_size, const char *value,
          size_t value_size)
{
    struct client_call *call = of_stream(stream);
    call->header_bytes += name_size + value_size + FIELD_OVERHEAD;
    if (!call->is_finished && call->header_bytes <= MAX_HEADER_BYTES)
        response_add_field(&call->response, &call->arena, name, name_size, value, value_size);
}

static void
on_headers_done(struct stream *stream, bool end_of_stream)
{
    (void)end_of_stream;
    struct client_call *call = of_stream(stream);
    if (call->header_bytes > MAX_HEADER_BYTES)
        finish(call, error_new(CODE_RESOURCE_EXHAUSTED,
                               "%s: the headers of the answer are too large", call->method->path));
    else if (!call->is_finished && response_end_block(&call->response, &call->arena))
        call->reader.encoding = call->response.encoding;
}

static bool
gives_one_message(const struct method *method)
{
    return method->kind == METHOD_UNARY || method->kind == METHOD_CLIENT_STREAM;
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
        if (call->has_reply && gives_one_message(call->method)) {
            message_free(message, &call->loop->budget);
            return error_new(CODE_INTERNAL, "more than one message came");
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

static void
credit(struct client_call *call)
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
        finish(call, error_wrap(error, "%s: the server's answer", call->method->path));
    else
        credit(call);
}

static void
on_written(struct stream *stream, size_t size)
{
    struct client_call *call = of_stream(stream);
    if (!call->has_only_message && size)
        mailbox_note_written(&call->mailbox, size);
}

/* gRPC lets a client try again what the server certainly has not begun. */
static bool
may_try_again(const struct client_call *call, uint32_t http2_error)
{
    return !call->is_finished && call->only_message && !call->response.saw_head &&
           call->attempts < MAX_ATTEMPTS &&
           (http2_error == NGHTTP2_REFUSED_STREAM || call->stream.never_sent);
}

static struct error *
final_status(const struct client_call *call, uint32_t http2_error, const char *why)
{
    if (http2_error == STREAM_CONNECTION_LOST && !call->response.saw_status)
        return error_new(CODE_UNAVAILABLE, "%s: %s", call->channel->target, why);
    if (channel_is_deadline(http2_error, call->deadline_at) && !call->response.saw_status)
        return deadline_error(call);
    if (call->stream.headers_too_large)
        return error_new(CODE_RESOURCE_EXHAUSTED, "%s: %s", call->method->path, why);
    struct error *error = response_status(&call->response, http2_error, why);
    if (!error)
        error = message_reader_finish(&call->reader);
    return error;
}

/* The server has said all: the call is over, whatever this side still wanted to send. */
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
    if (may_try_again(call, http2_error)) {
        stream->in_ended = stream->out_ended = stream->waits_for_data = stream->never_sent = false;
        channel_want(call->channel, &call->waiter);
        return;
    }
    if (call->is_finished)
        release(call);
    else
        finish(call, final_status(call, http2_error, why));
}

static const struct stream_events client_call_events = {
    .header = on_header,
    .headers_done = on_headers_done,
    .data = on_data,
    .ended = on_ended,
    .written = on_written,
    .closed = on_closed,
};

/* ---- beginning ---- */

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
    if (call->only_message) {
        call->only_message->references++;
        stream_push(&call->stream, call->only_message);
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
join_parent(struct client_call *call)
{
    struct call *parent = call->parent;
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

static void
start(struct task *task)
{
    struct client_call *call = CONTAINER_OF(task, struct client_call, start);
    join_parent(call);
    if (call->parent && call_is_cancelled(call->parent)) {
        finish_cancelled(call);
        return;
    }
    if (call->deadline_at)
        loop_arm(call->loop, &call->deadline, call->deadline_at);
    channel_want(call->channel, &call->waiter);
}

static struct client_call *
client_call_new(struct channel *channel, const struct method *method,
                const struct call_options *options)
{
    struct client_call *call = memory_zeroed(sizeof *call);
    atomic_init(&call->references, 2);
    call->stream.events = &client_call_events;
    call->channel = channel_share(channel);
    call->loop = channel->loop;
    call->method = method;
    call->parent = options->parent;
    call->waiter.wait_for_ready = options->wait_for_ready;
    call->waiter.ready = begin;
    call->waiter.failed = fail_to_begin;
    call->deadline.fire = on_deadline;
    if (options->timeout_ns)
        call->deadline_at = options->timeout_ns > UINT64_MAX - timers_now()
                                ? 0
                                : timers_now() + options->timeout_ns;
    arena_init(&call->arena, NULL, 0, SIZE_MAX);
    if (options->metadata)
        for (struct metadata_entry *e = options->metadata->first; e; e = e->next)
            metadata_add_bytes(&call->metadata, &call->arena, e->key, e->key_size, e->value,
                               e->value_size);
    message_reader_init(&call->reader, &call->loop->budget, channel->max_message_bytes);
    mailbox_init(&call->mailbox);
    call->start.run = start;
    return call;
}

/* ---- the thread's side ---- */

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
take_news(struct task *task)
{
    struct client_call *call = CONTAINER_OF(task, struct client_call, news);
    mailbox_hear(&call->mailbox);
    if (call->is_finished || !call->stream.conn) {
        release(call);
        return;
    }
    bool ended = mailbox_collect(&call->mailbox, &call->stream.out);
    if (ended && !call->stream.out_ended)
        stream_end(&call->stream, NULL, 0);
    else
        stream_resume(&call->stream);
    credit(call);
    release(call);
}

/* The task holds the call: the thread may let go of it before the loop gets to the news. */
static void
tell_loop(struct client_call *call, bool wanted)
{
    if (!wanted)
        return;
    atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
    call->news.run = take_news;
    loop_post(call->loop, &call->news);
}

struct error *
client_call_send(struct client_call *call, const ProtobufCMessage *message)
{
    struct chunk *chunk;
    struct error *error = framing_pack(message, &chunk);
    if (error)
        return error;
    bool tell;
    bool open = mailbox_put(&call->mailbox, chunk, &tell);
    tell_loop(call, tell);
    return open ? NULL : error_new(CODE_CANCELLED, "%s: the call has ended", call->method->path);
}

void
client_call_close_send(struct client_call *call)
{
    bool tell;
    mailbox_end_out(&call->mailbox, &tell);
    tell_loop(call, tell);
}

static struct error *
unpack_reply(const struct client_call *call, const struct message *message, struct arena *arena,
             ProtobufCMessage **out)
{
    struct error *error = framing_unpack(call->method->output, message, arena, out);
    /* It was not the caller's argument. */
    if (error && error->code == CODE_INVALID_ARGUMENT)
        error->code = CODE_INTERNAL;
    return error_wrap(error, "%s: the server's answer", call->method->path);
}

struct error *
client_call_recv(struct client_call *call, struct arena *arena, void *out)
{
    ProtobufCMessage *decoded = NULL;
    bool tell;
    struct message *message = mailbox_take(&call->mailbox, &tell);
    tell_loop(call, tell);
    struct error *error = NULL;
    if (message)
        error = unpack_reply(call, message, arena, &decoded);
    message_free(message, &call->loop->budget);
    memcpy(out, &decoded, sizeof decoded);
    return error;
}

struct error *
client_call_finish(struct client_call *call)
{
    bool tell;
    struct message *message;
    while ((message = mailbox_take(&call->mailbox, &tell))) {
        message_free(message, &call->loop->budget);
        tell_loop(call, tell);
    }
    mailbox_wait_closed(&call->mailbox);
    return STEAL(call->result);
}

static void
cancel_on_loop(struct task *task)
{
    struct client_call *call = CONTAINER_OF(task, struct client_call, cancel);
    finish_cancelled(call);
    release(call);
}

void
client_call_cancel(struct client_call *call)
{
    if (atomic_exchange(&call->cancel_asked, true))
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
    release(call);
}

static struct error *
take_only_reply(struct client_call *call, struct arena *arena, void *reply)
{
    bool tell;
    ProtobufCMessage *decoded = NULL;
    struct message *message = mailbox_take(&call->mailbox, &tell);
    struct message *second = message ? mailbox_take(&call->mailbox, &tell) : NULL;
    struct error *error = NULL;
    if (!message)
        error = error_new(CODE_INTERNAL, "%s: the server answered OK without a message",
                          call->method->path);
    else if (second)
        error = error_new(CODE_INTERNAL, "%s: the server answered with more than one message",
                          call->method->path);
    else
        error = unpack_reply(call, message, arena, &decoded);
    message_free(message, &call->loop->budget);
    message_free(second, &call->loop->budget);
    memcpy(reply, &decoded, sizeof decoded);
    return error;
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
    call->only_message = message;
    call->has_only_message = true;
    loop_post(channel->loop, &call->start);
    mailbox_wait_closed(&call->mailbox);
    error = STEAL(call->result);
    if (!error)
        error = take_only_reply(call, arena, reply);
    release(call);
    return error;
}
