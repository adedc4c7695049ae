/* SPDX-License-Identifier: Apache-2.0 */
/* Sending on an HTTP/2 stream: see stream.h. */
#include "rpc/http2/stream.h"

#include "rpc/http2/conn.h"
#include "rpc/http2/conn_internal.h"

/* Tells nghttp2 how many bytes are queued; conn_write_send_data takes them. */
static ssize_t
offer_data(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t room, uint32_t *flags,
           nghttp2_data_source *source, void *argument)
{
    (void)buffer;
    (void)argument;
    struct stream *stream = source->ptr;
    size_t size = stream->out.size < room ? stream->out.size : room;
    if (!size && !stream->out_ended) {
        stream->waits_for_data = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (stream->out_ended && size == stream->out.size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (stream->trailer_count) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_trailer(session, id, stream->trailers, stream->trailer_count);
        }
    }
    return (ssize_t)size;
}

struct error *
stream_begin_request(struct stream *stream, struct conn *conn, const nghttp2_nv *fields,
                     size_t count)
{
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = offer_data};
    int32_t id = nghttp2_submit_request(conn->session, NULL, fields, count, &provider, stream);
    if (id < 0)
        return error_new(CODE_UNAVAILABLE, "begin a stream: %s", nghttp2_strerror(id));
    conn_add_stream(conn, stream, id);
    conn_mark_dirty(conn);
    return NULL;
}

void
stream_send_headers(struct stream *stream, const nghttp2_nv *fields, size_t count, bool end)
{
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = offer_data};
    nghttp2_submit_response(stream->conn->session, stream->id, fields, count,
                            end ? NULL : &provider);
    conn_mark_dirty(stream->conn);
}

void
stream_resume(struct stream *stream)
{
    if (!stream->conn)
        return;
    if (stream->waits_for_data) {
        stream->waits_for_data = false;
        nghttp2_session_resume_data(stream->conn->session, stream->id);
    }
    conn_mark_dirty(stream->conn);
}

void
stream_push(struct stream *stream, struct chunk *chunk)
{
    chunk_queue_push(&stream->out, chunk);
    stream_resume(stream);
}

void
stream_end(struct stream *stream, nghttp2_nv *trailers, size_t count)
{
    stream->out_ended = true;
    stream->trailers = trailers;
    stream->trailer_count = count;
    stream_resume(stream);
}

void
stream_reset(struct stream *stream, uint32_t http2_error)
{
    if (!stream->conn || stream->is_reset)
        return;
    stream->is_reset = true;
    conn_session_reset(stream->conn, stream->id, http2_error);
    conn_mark_dirty(stream->conn);
}

bool
stream_is_sent(const struct stream *stream)
{
    return !stream->conn || stream->is_sent;
}

void
stream_consume(struct stream *stream, size_t size)
{
    if (!stream->conn || !size || stream->in_ended)
        return;
    nghttp2_session_consume_stream(stream->conn->session, stream->id, size);
    conn_mark_dirty(stream->conn);
}
