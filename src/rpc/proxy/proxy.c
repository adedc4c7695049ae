/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards a call to another server, stream to stream: fields, bytes and trailers pass unchanged,
 * and messages are not decoded. Loop thread only.
 *
 * FLOW CONTROL. Bytes received from one side are queued on the other. A side's stream window is
 * updated only after its bytes were written to the other side's socket. So a slow reader at one end
 * blocks the writer at the other (backpressure). At most one stream window is buffered in each
 * direction, charged to the client's connection.
 *
 * LIFE. `struct proxied` contains the stream to the server (upstream) and points to the call
 * (downstream). It is freed when both streams are closed.
 */
#include "rpc/proxy/proxy.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/client/channel_internal.h"
#include "rpc/client/request_fields.h"
#include "rpc/grpc/grpc_text.h"
#include "rpc/server/call_internal.h"

#define FIRST_BLOCK_BYTES 512

/* Response headers up to this size are covered by the charge for the call. */
#define SMALL_HEADER_BYTES 4096u

struct proxied {
    struct stream upstream; /* must be first */
    struct waiter waiter;
    struct call *call; /* NULL: the client's stream is closed */
    struct peer *peer; /* the client, which is charged */
    struct budget *budget;
    struct channel *channel;
    struct arena arena;
    struct kept_fields *fields; /* of the response */
    size_t header_bytes;
    size_t charged; /* bytes buffered in both directions, and large headers */
    bool header_sent;
    bool is_ended;
    bool upstream_closed;
    enum code code; /* the upstream server's status */
};

static struct proxied *
of_upstream(struct stream *stream)
{
    return (struct proxied *)stream;
}

static struct proxied *
of_downstream(struct stream *stream)
{
    return ((struct call *)stream)->proxied;
}

static void
maybe_free(struct proxied *proxied)
{
    if (proxied->call || !proxied->upstream_closed)
        return;
    budget_give_back(proxied->budget, proxied->charged);
    peer_release(proxied->peer);
    chunk_queue_clear(&proxied->upstream.out);
    struct blocks *blocks = &proxied->channel->loop->blocks;
    channel_release(proxied->channel);
    field_block_release(&proxied->fields);
    arena_clear(&proxied->arena);
    blocks_free(blocks, proxied);
}

/* Answers the client in place of the upstream server. Takes over the error. */
static void
answer(struct proxied *proxied, struct error *error)
{
    if (proxied->call && !proxied->is_ended)
        call_reply_status(proxied->call, error);
    else
        error_free(error);
    proxied->is_ended = true;
}

static void
cancel(struct proxied *proxied)
{
    proxied->is_ended = true;
    channel_stop_waiting(&proxied->waiter);
    if (proxied->upstream.conn)
        stream_reset(&proxied->upstream, NGHTTP2_CANCEL);
    else
        proxied->upstream_closed = true;
}

static void
refuse_call(struct proxied *proxied, const char *why)
{
    answer(proxied, error_new(CODE_RESOURCE_EXHAUSTED, "%s", why));
    cancel(proxied);
}

/* Returns false, and ends the call, if the budget is used up. */
static bool
charge(struct proxied *proxied, size_t size)
{
    bool fits = budget_take(proxied->budget, size);
    if (fits)
        proxied->charged += size;
    else
        refuse_call(proxied, "the memory limit for proxied calls is reached; try again later");
    return fits;
}

/* ---- data, both directions ---- */

static void
forward_bytes(struct proxied *proxied, struct stream *to, const uint8_t *bytes, size_t size)
{
    if (!charge(proxied, size))
        return;
    chunk_queue_append(&to->out, &proxied->channel->loop->blocks, bytes, size);
    stream_resume(to);
}

static void
on_forwarded(struct proxied *proxied, struct stream *from, size_t size)
{
    proxied->charged -= size;
    budget_give_back(proxied->budget, size);
    stream_consume(from, size);
}

/* ---- upstream events ---- */

static nghttp2_nv *
copy_fields(struct proxied *proxied, const struct field_block *block)
{
    nghttp2_nv *copy = arena_alloc(&proxied->arena, block->count * sizeof *copy);
    for (size_t i = 0; i < block->count; i++) {
        const struct field *field = &block->fields[i];
        uint8_t secret = field->is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
        copy[i] = (nghttp2_nv){
            (uint8_t *)field->name, (uint8_t *)field->value, field->name_size, field->value_size,
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE | secret};
    }
    return copy;
}

static void
read_status(struct proxied *proxied, const struct field_block *block)
{
    const struct field *status = field_block_find(block, "grpc-status", strlen("grpc-status"));
    if (!status)
        return;
    int number = grpc_text_parse_number(status->value, status->value_size, CODE_COUNT);
    proxied->code = number < CODE_COUNT ? (enum code)number : CODE_UNKNOWN;
}

static void
finish_response(struct proxied *proxied)
{
    struct call *call = proxied->call;
    proxied->is_ended = true;
    /* The response is complete: nobody needs what the client still sends. */
    if (!stream_is_sent(&proxied->upstream))
        stream_reset(&proxied->upstream, NGHTTP2_CANCEL);
    call_end_answer(call);
    call_count(call, proxied->code, NULL, proxied->upstream.conn->last_read_at);
}

static bool
is_interim(const struct proxied *proxied, const struct field_block *block)
{
    const struct field *status =
        proxied->header_sent ? NULL : field_block_find(block, ":status", strlen(":status"));
    return status && status->value[0] == '1';
}

static void
forward_block(struct proxied *proxied, struct field_block *block, bool end)
{
    struct stream *down = &proxied->call->stream;
    nghttp2_nv *fields = copy_fields(proxied, block);
    field_block_keep(block, &proxied->fields, &proxied->arena);
    if (!proxied->header_sent) {
        proxied->header_sent = true;
        proxied->call->answer = ANSWER_BEGUN;
        stream_send_headers(down, fields, block->count, end);
    } else {
        stream_end(down, fields, block->count);
        end = true;
    }
    if (end) {
        read_status(proxied, block);
        finish_response(proxied);
    }
}

static bool
charge_header(struct proxied *proxied, const struct field_block *block)
{
    size_t size = field_block_memory(block);
    return size <= SMALL_HEADER_BYTES || charge(proxied, size);
}

static void
on_up_headers(struct stream *stream, struct field_block *block, bool end_of_stream)
{
    struct proxied *proxied = of_upstream(stream);
    proxied->header_bytes += block->bytes;
    if (proxied->header_bytes > RESPONSE_MAX_HEADER_BYTES)
        refuse_call(proxied, "the response headers are too large");
    else if (proxied->call && !proxied->is_ended && !is_interim(proxied, block) &&
             charge_header(proxied, block))
        forward_block(proxied, block, end_of_stream);
}

static void
on_up_data(struct stream *stream, const uint8_t *bytes, size_t size)
{
    struct proxied *proxied = of_upstream(stream);
    if (proxied->call && !proxied->is_ended)
        forward_bytes(proxied, &proxied->call->stream, bytes, size);
    else
        stream_consume(stream, size);
}

static void
on_up_ended(struct stream *stream)
{
    struct proxied *proxied = of_upstream(stream);
    if (!proxied->call || proxied->is_ended)
        return;
    stream_end(&proxied->call->stream, NULL, 0);
    finish_response(proxied);
}

static void
on_up_written(struct stream *stream, size_t size)
{
    struct proxied *proxied = of_upstream(stream);
    if (proxied->call)
        on_forwarded(proxied, &proxied->call->stream, size);
}

static enum code
code_of_end(const struct proxied *proxied, uint32_t http2_error)
{
    if (http2_error == STREAM_CONNECTION_LOST)
        return CODE_UNAVAILABLE;
    if (proxied->call && channel_is_deadline(http2_error, proxied->call->parent.deadline_at))
        return CODE_DEADLINE_EXCEEDED;
    return grpc_text_code_of_rst(http2_error);
}

static void
on_up_closed(struct stream *stream, uint32_t http2_error, const char *why)
{
    struct proxied *proxied = of_upstream(stream);
    proxied->upstream_closed = true;
    if (!proxied->is_ended)
        answer(proxied, error_new(code_of_end(proxied, http2_error), "%s: %s",
                                  proxied->channel->target, why ? why : "the stream ended early"));
    maybe_free(proxied);
}

static const struct stream_events upstream_events = {
    .headers = on_up_headers,
    .data = on_up_data,
    .ended = on_up_ended,
    .written = on_up_written,
    .closed = on_up_closed,
};

/* ---- downstream events ---- */

/*
 * A malformed request must not be forwarded (RFC 9113, 8.1.1): the upstream server could mistake
 * the part it got for a complete request.
 */
static void
refuse(struct call *call, const char *why)
{
    call->header.malformed = why;
    cancel(call->proxied);
    call_reset_malformed(call);
}

static void
on_down_trailers(struct stream *stream, struct field_block *block, bool end_of_stream)
{
    struct call *call = (struct call *)stream;
    request_read_fields(&call->header, &call->arena, block->fields, block->count);
    if (call->header.malformed || !end_of_stream)
        refuse(call, "trailers");
}

static void
on_down_data(struct stream *stream, const uint8_t *bytes, size_t size)
{
    struct call *call = (struct call *)stream;
    struct proxied *proxied = call->proxied;
    if (call->header.malformed)
        return;
    call->body_bytes += (int64_t)size;
    if (call->header.content_length >= 0 && call->body_bytes > call->header.content_length)
        refuse(call, "more bytes than content-length says");
    else if (proxied->upstream_closed || proxied->is_ended)
        stream_consume(stream, size);
    else
        forward_bytes(proxied, &proxied->upstream, bytes, size);
}

static void
on_down_ended(struct stream *stream)
{
    struct call *call = (struct call *)stream;
    if (call->header.malformed)
        return;
    if (call->header.content_length >= 0 && call->body_bytes != call->header.content_length)
        refuse(call, "fewer bytes than content-length says");
    else
        stream_end(&call->proxied->upstream, NULL, 0);
}

static void
on_down_written(struct stream *stream, size_t size)
{
    struct proxied *proxied = of_downstream(stream);
    on_forwarded(proxied, &proxied->upstream, size);
}

static void
on_down_closed(struct stream *stream, uint32_t http2_error, const char *why)
{
    (void)http2_error;
    struct call *call = (struct call *)stream;
    struct proxied *proxied = STEAL(call->proxied);
    if (call_end_answer(call))
        call_count(call, CODE_CANCELLED, why, timers_now());
    call->cancelled = NULL;
    call->answer = ANSWER_GONE;
    proxied->call = NULL;
    cancel(proxied);
    maybe_free(proxied);
    call_maybe_free(call);
}

static const struct stream_events downstream_events = {
    .headers = on_down_trailers,
    .data = on_down_data,
    .ended = on_down_ended,
    .written = on_down_written,
    .closed = on_down_closed,
};

/* ---- start ---- */

/* Fields that are set anew for this hop, or belong to the previous hop only. */
static bool
is_hop_field(const struct metadata_entry *entry)
{
    return (entry->key_size == 12 && memcmp(entry->key, "grpc-timeout", 12) == 0) ||
           (entry->key_size == 4 && memcmp(entry->key, "host", 4) == 0);
}

static void
begin(struct waiter *waiter, struct conn *conn)
{
    struct proxied *proxied = CONTAINER_OF(waiter, struct proxied, waiter);
    struct call *call = proxied->call;
    struct request_fields fields;
    request_fields_begin(&fields, &proxied->arena, proxied->channel, call->header.path,
                         call->header.metadata.count);
    request_fields_add_timeout(&fields, call->parent.deadline_at);
    for (struct metadata_entry *e = call->header.metadata.first; e; e = e->next)
        if (!is_hop_field(e))
            request_fields_add_raw(&fields, e);
    struct error *error =
        stream_begin_request(&proxied->upstream, conn, fields.items, fields.count);
    if (error) {
        proxied->upstream_closed = true;
        answer(proxied, error);
    }
}

static void
fail_to_begin(struct waiter *waiter, struct error *error)
{
    struct proxied *proxied = CONTAINER_OF(waiter, struct proxied, waiter);
    proxied->upstream_closed = true;
    answer(proxied, error);
}

/* Forwards what the client sent before the destination was known. */
static void
forward_raw_body(struct proxied *proxied)
{
    struct call *call = proxied->call;
    while (call->raw_body.size) {
        const uint8_t *bytes;
        struct chunk *chunk;
        size_t size = chunk_queue_peek(&call->raw_body, SIZE_MAX, &bytes, &chunk);
        budget_give_back(call->budget, size);
        forward_bytes(proxied, &proxied->upstream, bytes, size);
        chunk_queue_advance(&call->raw_body, size);
    }
    if (call->stream.in_ended)
        stream_end(&proxied->upstream, NULL, 0);
}

static void
on_cancelled(struct call *call)
{
    cancel(call->proxied);
}

static struct proxied *
new_proxied(struct call *call, struct channel *channel)
{
    struct proxied *proxied =
        blocks_alloc(&call->loop->blocks, sizeof *proxied + FIRST_BLOCK_BYTES);
    memset(proxied, 0, sizeof *proxied);
    proxied->call = call;
    proxied->peer = peer_share(call->peer);
    proxied->budget = call->budget;
    proxied->channel = channel;
    proxied->code = CODE_UNKNOWN;
    proxied->upstream.events = &upstream_events;
    proxied->waiter.ready = begin;
    proxied->waiter.failed = fail_to_begin;
    arena_init(&proxied->arena, proxied + 1, FIRST_BLOCK_BYTES, SIZE_MAX);
    return proxied;
}

static void
drop(struct call *call)
{
    channel_release(STEAL(call->proxy_to));
}

/* Called after the fallback handler has returned. */
static void
begin_forwarding(struct call *call)
{
    call->state = CALL_RETURNED;
    bool is_ours = call->proxy_to->loop == call->loop;
    if (!is_ours || call->answer >= ANSWER_ENDED) {
        drop(call);
        call_reply_status(call, error_new(CODE_INTERNAL, "the channel belongs to another runtime"));
        call_maybe_free(call);
        return;
    }
    struct proxied *proxied = new_proxied(call, STEAL(call->proxy_to));
    call->proxied = proxied;
    call->cancelled = on_cancelled;
    call->stream.events = &downstream_events;
    forward_raw_body(proxied);
    if (!proxied->upstream_closed)
        channel_request_conn(proxied->channel, &proxied->waiter);
}

void
rpc_proxy(struct call *call, struct channel *channel)
{
    call->proxy_to = channel_share(channel);
    call->next = (struct next_step){begin_forwarding, drop};
}
