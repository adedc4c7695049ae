/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/2 session of a connection: setup and nghttp2's callbacks.
 *
 * DESIGN. nghttp2 checks the framing. On servers, request.c validates the header fields, because
 * real clients send :authority in forms that nghttp2 refuses. The connection's window is updated as
 * soon as bytes arrive, so that one slow stream never blocks the others; only the stream's own
 * window slows a sender down. (Rejected: updating the connection's window when bytes are consumed.
 * Bytes forwarded after their stream has closed would never be returned to it.) The stream windows
 * and the loop's memory budget bound what can accumulate.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/http2/conn_internal.h"

#define CONNECTION_WINDOW (8 * 1024 * 1024)
#define SERVER_STREAM_WINDOW (256 * 1024)
#define CLIENT_STREAM_WINDOW (1024 * 1024)
#define MAX_FRAME_BYTES (16384)

/*
 * Ping rate limit (token bucket): a burst, and a sustained rate. Each HEADERS or DATA frame sent
 * refills it.
 */
#define PING_BURST 2000u
#define PINGS_PER_SECOND 1u

/* One read may bring a full burst of pings, all to be acked before the next flush. */
#define MAX_PENDING_ACKS (2 * PING_BURST)

/*
 * Reset rate limit: nghttp2 closes a connection whose peer resets more streams than this. Local
 * peers are trusted, and some callers cancel a lot.
 */
#define RESET_BURST 1000u
#define RESETS_PER_SECOND 33u
#define LOCAL_RESET_BURST 100000u
#define LOCAL_RESETS_PER_SECOND 10000u

/* ---- events ---- */

/* Consecutive events mostly concern the same stream, so the last one is cached. */
static struct stream *
find_stream(struct conn *conn, int32_t id)
{
    if (!conn->last_found || conn->last_found->id != id)
        conn->last_found = nghttp2_session_get_stream_user_data(conn->session, id);
    return conn->last_found;
}

static void
link_stream(struct conn *conn, struct stream *stream)
{
    stream->conn = conn;
    stream->next = conn->streams;
    if (stream->next)
        stream->next->link = &stream->next;
    stream->link = &conn->streams;
    conn->streams = stream;
    conn->stream_count++;
    stream->has_progress = true;
}

static void
unlink_stream(struct stream *stream)
{
    stream->conn->stream_count--;
    if (stream->conn->last_found == stream)
        stream->conn->last_found = NULL;
    *stream->link = stream->next;
    if (stream->next)
        stream->next->link = stream->link;
    stream->conn = NULL;
}

bool
conn_can_open_stream(const struct conn *conn)
{
    return conn->stream_count < nghttp2_session_get_remote_settings(
                                    conn->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

static void
notify_stream_available(struct conn *conn)
{
    if (conn->events->stream_available)
        conn->events->stream_available(conn);
}

void
conn_add_stream(struct conn *conn, struct stream *stream, int32_t id)
{
    stream->id = id;
    link_stream(conn, stream);
}

void
conn_session_reset(struct conn *conn, int32_t id, uint32_t http2_error)
{
    conn->expects_late_frames = true;
    nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, id, http2_error);
}

/*
 * nghttp2 can keep closed streams, as many as may be open, just to tell late frames from invalid
 * ones. That would take more memory than the rest of a connection, so it is switched off, and the
 * frames that nghttp2 then ignores are checked here. A frame for a closed stream is valid as long
 * as the peer may not know of the reset. Otherwise it is a connection error.
 */
static void
refuse_late_frame(struct conn *conn, uint32_t http2_error)
{
    if (!conn->expects_late_frames)
        nghttp2_session_terminate_session(conn->session, http2_error);
}

/* An id that the peer skipped was never a stream: that is a PROTOCOL_ERROR, not STREAM_CLOSED. */
static int
on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *header, void *argument)
{
    struct conn *conn = argument;
    if (header->type == NGHTTP2_DATA && header->flags & NGHTTP2_FLAG_PADDED)
        conn->expects_late_frames = true; /* conn_session_consume would mistake padding for it */
    if (!conn->is_server || header->type != NGHTTP2_HEADERS)
        return 0;
    size_t last = (size_t)nghttp2_session_get_last_proc_stream_id(session);
    if ((size_t)header->stream_id <= last &&
        !nghttp2_session_find_stream(session, header->stream_id))
        refuse_late_frame(conn, conn->opened_streams == (last + 1) / 2 ? NGHTTP2_STREAM_CLOSED
                                                                       : NGHTTP2_PROTOCOL_ERROR);
    return 0;
}

/* nghttp2 itself resets the stream. */
static int
on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *argument)
{
    (void)session;
    (void)frame;
    (void)error;
    ((struct conn *)argument)->expects_late_frames = true;
    return 0;
}

/* DATA that arrived but was not delivered to a stream belongs to a closed stream. */
void
conn_session_consume(struct conn *conn, int32_t window_used_before)
{
    int32_t received =
        nghttp2_session_get_effective_recv_data_length(conn->session) - window_used_before;
    if (conn->is_server && received > (int32_t)conn->unconsumed)
        refuse_late_frame(conn, NGHTTP2_STREAM_CLOSED);
    nghttp2_session_consume_connection(conn->session, conn->unconsumed);
    conn->unconsumed = 0;
}

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *argument)
{
    struct conn *conn = argument;
    conn->loop->unflushed++;
    field_block_drop(&conn->block);
    if (!conn->is_server || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    conn->opened_streams++;
    /*
     * The final GOAWAY tells the peer that this stream was not processed, so it may retry
     * elsewhere.
     */
    if (conn->refuses_streams) {
        conn_session_reset(conn, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    struct stream *stream = conn->events->open_stream(conn, frame->hd.stream_id);
    conn_add_stream(conn, stream, frame->hd.stream_id);
    conn->last_found = stream;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
          nghttp2_rcbuf *value, uint8_t flags, void *argument)
{
    (void)session;
    (void)frame;
    field_block_add(&((struct conn *)argument)->block, name, value,
                    flags & NGHTTP2_NV_FLAG_NO_INDEX);
    return 0;
}

/*
 * Closes the connection of a peer that floods it with pings. Keepalive and bandwidth probes stay
 * below the limit.
 */
static void
count_ping(struct conn *conn)
{
    uint64_t now = timers_now();
    uint64_t earned = (now - conn->pings_refilled_at) / 1000000000u * PINGS_PER_SECOND;
    if (earned) {
        conn->pings_refilled_at = now;
        conn->pings_allowed = earned > PING_BURST - conn->pings_allowed
                                  ? PING_BURST
                                  : conn->pings_allowed + (unsigned)earned;
    }
    if (conn->pings_allowed) {
        conn->pings_allowed--;
        return;
    }
    static const uint8_t text[] = "too_many_pings";
    nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(conn->session),
                          NGHTTP2_ENHANCE_YOUR_CALM, text, sizeof text - 1);
    conn_kill(conn, "the peer sent too many pings");
}

static void
send_delayed_ack(struct timer *timer)
{
    struct conn *conn = CONTAINER_OF(timer, struct conn, ack_delay);
    conn_write_ack(conn);
    conn_mark_dirty(conn);
}

static void
end_linger(struct timer *timer)
{
    struct conn *conn = CONTAINER_OF(timer, struct conn, linger);
    conn->has_lingered = true;
    conn_mark_dirty(conn);
}

/* One ack may wait for other output; a second ping sends the first ack. */
static void
delay_ack(struct conn *conn, const nghttp2_ping *ping)
{
    if (conn->ping_ack_due)
        conn_write_ack(conn);
    conn->ping_ack_due = true;
    memcpy(conn->ack, ping->opaque_data, sizeof conn->ack);
}

/*
 * Sends GOAWAY with the reason and accepts no stream, not even those that came with the SETTINGS.
 */
static void
refuse(struct conn *conn)
{
    conn->refuses_streams = conn->expects_late_frames = true;
    nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR,
                          (const uint8_t *)conn->refusal, strlen(conn->refusal));
}

static void
on_goaway(struct conn *conn, const nghttp2_goaway *goaway)
{
    conn->received_goaway = true;
    char text[128];
    size_t size =
        goaway->opaque_data_len < sizeof text - 1 ? goaway->opaque_data_len : sizeof text - 1;
    if (size)
        memcpy(text, goaway->opaque_data, size);
    text[size] = '\0';
    if (!conn->goaway_text && text[0])
        conn->goaway_text = memory_string(text);
    if (conn->events->going_away)
        conn->events->going_away(conn, goaway->error_code, text);
}

static void
on_stream_frame(struct conn *conn, const nghttp2_frame *frame)
{
    struct stream *stream = find_stream(conn, frame->hd.stream_id);
    if (!stream)
        return;
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (ends)
        stream->in_ended = true;
    if (frame->hd.type == NGHTTP2_HEADERS)
        stream->events->headers(stream, &conn->block, ends);
    if (ends && stream->conn)
        stream->events->ended(stream);
}

static int
on_frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *argument)
{
    (void)session;
    struct conn *conn = argument;
    if (!conn->received_settings) {
        conn->received_settings = true;
        if (conn->events->introduced)
            conn->events->introduced(conn);
        if (conn->refusal)
            refuse(conn);
    }
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        on_stream_frame(conn, frame);
        break;
    case NGHTTP2_PING:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
            count_ping(conn);
            delay_ack(conn, &frame->ping);
        }
        break;
    case NGHTTP2_GOAWAY:
        on_goaway(conn, &frame->goaway);
        break;
    case NGHTTP2_SETTINGS:
        notify_stream_available(conn);
        break;
    default:
        break;
    }
    return conn->is_dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t size,
        void *argument)
{
    (void)session;
    (void)flags;
    struct conn *conn = argument;
    struct stream *stream = find_stream(conn, id);
    conn->unconsumed += size;
    if (stream)
        stream->events->data(stream, bytes, size);
    return 0;
}

static int
on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *argument)
{
    (void)session;
    struct conn *conn = argument;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    conn->pings_allowed = PING_BURST;
    if (!conn->is_server || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    /* The response ended before the request did: tell the peer to stop sending. */
    struct stream *stream = find_stream(conn, frame->hd.stream_id);
    if (stream && !stream->in_ended)
        conn_session_reset(conn, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int
on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *argument)
{
    (void)session;
    struct conn *conn = argument;
    struct stream *stream = find_stream(conn, frame->hd.stream_id);
    if (!stream || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    stream->headers_too_large = error == NGHTTP2_ERR_FRAME_SIZE_ERROR;
    stream->never_sent = !stream->headers_too_large;
    /*
     * The response's headers are too large to send: reset the stream, so that the peer is not left
     * waiting.
     */
    if (conn->is_server)
        conn_session_reset(conn, frame->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
    return 0;
}

static void
end_stream(struct stream *stream, uint32_t http2_error, const char *why)
{
    unlink_stream(stream);
    chunk_queue_clear(&stream->out);
    stream->events->closed(stream, http2_error, why);
}

static int
on_stream_closed(nghttp2_session *session, int32_t id, uint32_t http2_error, void *argument)
{
    (void)session;
    struct conn *conn = argument;
    struct stream *stream = find_stream(conn, id);
    if (!stream || !stream->conn)
        return 0;
    const char *why = http2_error ? nghttp2_http2_strerror(http2_error) : NULL;
    if (stream->headers_too_large)
        end_stream(stream, NGHTTP2_ENHANCE_YOUR_CALM, "the headers are too large to send");
    else
        end_stream(stream, http2_error, why && conn->goaway_text ? conn->goaway_text : why);
    notify_stream_available(conn);
    return 0;
}

static int
on_session_error(nghttp2_session *session, int error, const char *text, size_t size, void *argument)
{
    (void)session;
    (void)text;
    (void)size;
    if (error == NGHTTP2_ERR_SETTINGS_EXPECTED)
        ((struct conn *)argument)->not_http2 = true;
    return 0;
}

/* ---- setup ---- */

static nghttp2_option *
make_options(const struct conn_options *options)
{
    nghttp2_option *option;
    if (nghttp2_option_new(&option) != 0)
        memory_exhausted();
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_auto_ping_ack(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, MAX_PENDING_ACKS);
    if (options->is_server) {
        nghttp2_option_set_no_http_messaging(option, 1);
        nghttp2_option_set_stream_reset_rate_limit(
            option, options->is_local ? LOCAL_RESET_BURST : RESET_BURST,
            options->is_local ? LOCAL_RESETS_PER_SECOND : RESETS_PER_SECOND);
    }
    return option;
}

static nghttp2_session_callbacks *
make_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        memory_exhausted();
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_error_callback2(callbacks, on_session_error);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, conn_write_send_data);
    return callbacks;
}

static void
submit_settings(struct conn *conn, const struct conn_options *options)
{
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
         options->is_server ? SERVER_STREAM_WINDOW : CLIENT_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, MAX_FRAME_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options->max_header_bytes},
        {options->is_server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
                            : NGHTTP2_SETTINGS_ENABLE_PUSH,
         options->is_server ? options->max_streams : 0},
        /*
         * Clients only: servers send no priorities. On a server, nghttp2 would then accept
         * violations of the priority rules, and h2spec fails.
         */
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    size_t count = COUNT_OF(settings) - (options->is_server ? 1 : 0);
    nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, count);
    nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

void
conn_session_open(struct conn *conn, const struct conn_options *options)
{
    nghttp2_option *option = make_options(options);
    nghttp2_session_callbacks *callbacks = make_callbacks();
    nghttp2_mem memory = blocks_as_memory(&conn->loop->blocks);
    int failed =
        options->is_server
            ? nghttp2_session_server_new3(&conn->session, callbacks, conn, option, &memory)
            : nghttp2_session_client_new3(&conn->session, callbacks, conn, option, &memory);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    if (failed)
        memory_exhausted();
    submit_settings(conn, options);
    conn->block.max_bytes = options->max_header_bytes;
    conn->pings_allowed = PING_BURST;
    conn->pings_refilled_at = timers_now();
    conn->ack_delay.fire = send_delayed_ack;
    conn->linger.fire = end_linger;
}

/* ---- shutdown ---- */

void
conn_announce_shutdown(struct conn *conn)
{
    conn->expects_late_frames = true;
    nghttp2_submit_shutdown_notice(conn->session);
    conn_mark_dirty(conn);
}

void
conn_refuse_new_streams(struct conn *conn)
{
    conn->refuses_streams = conn->expects_late_frames = true;
    nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(conn->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
    conn_mark_dirty(conn);
}

void
conn_session_end(struct conn *conn, const char *why)
{
    loop_disarm(conn->loop, &conn->ack_delay);
    loop_disarm(conn->loop, &conn->linger);
    field_block_clear(&conn->block);
    while (conn->streams) {
        struct stream *stream = conn->streams;
        nghttp2_session_set_stream_user_data(conn->session, stream->id, NULL);
        end_stream(stream, STREAM_CONNECTION_LOST, why);
    }
}
