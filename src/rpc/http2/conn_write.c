/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to a connection: gathers the output of the HTTP/2 session into one writev(2).
 *
 * DESIGN. Frame headers and small frames are copied into the loop's buffer. Large DATA is not
 * copied; the batch holds a reference to its chunk until the kernel has taken the bytes. When the
 * socket is full, the batch is kept (struct leftover), and nothing more is taken from the session
 * until it is written. So all queueing is subject to the session's flow control.
 *
 * A ping ack is delayed briefly, so that it can share a write with other output. grpc-go pings with
 * every call to measure bandwidth. If the call is not answered in the same loop turn, an immediate
 * ack would cost a system call here and a wake-up at the client.
 */
#include "rpc/http2/conn_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/memory.h"

#define MAX_PIECES 64
#define FRAME_HEADER_BYTES 9
#define MIN_ZERO_COPY_BYTES 2048

/* The input of one writev. `held[i]` is NULL if the piece is in the loop's buffer. */
struct batch {
    /* One spare, for a frame that arrives when the array is full. */
    struct iovec pieces[MAX_PIECES + 1];
    struct chunk *held[MAX_PIECES + 1];
    size_t count;
    size_t buffered; /* bytes used in the loop's buffer */
    size_t total;
    bool is_full; /* a frame did not fit */
};

struct leftover {
    size_t first;
    struct batch batch;
    uint8_t bytes[]; /* copies of what was in the loop's buffer */
};

/* The batch of the current flush; conn_write_send_data finds it here. */
static struct batch *
current_batch(struct conn *conn)
{
    return conn->batch;
}

static bool
has_room(const struct batch *batch, size_t copied)
{
    return batch->count + 2 <= MAX_PIECES && batch->buffered + copied <= LOOP_WRITE_BYTES;
}

static void
add_copy(struct conn *conn, struct batch *batch, const void *bytes, size_t size)
{
    uint8_t *to = conn->loop->write_buffer + batch->buffered;
    memcpy(to, bytes, size);
    batch->buffered += size;
    batch->total += size;
    struct iovec *last = batch->count ? &batch->pieces[batch->count - 1] : NULL;
    if (last && !batch->held[batch->count - 1] && (uint8_t *)last->iov_base + last->iov_len == to) {
        last->iov_len += size;
        return;
    }
    batch->held[batch->count] = NULL;
    batch->pieces[batch->count++] = (struct iovec){to, size};
}

static void
add_held(struct batch *batch, struct chunk *chunk, const uint8_t *bytes, size_t size)
{
    chunk->references++;
    batch->held[batch->count] = chunk;
    batch->pieces[batch->count++] = (struct iovec){(void *)bytes, size};
    batch->total += size;
}

/* Bytes that do not fit in the buffer get a chunk of their own. */
static void
add_chunk(struct batch *batch, const uint8_t *bytes, size_t size)
{
    struct chunk *chunk = chunk_new(size);
    memcpy(chunk->bytes, bytes, size);
    add_held(batch, chunk, chunk->bytes, size);
    chunk_release(chunk);
}

static void
release_held(struct batch *batch, size_t first)
{
    for (size_t i = first; i < batch->count; i++)
        chunk_release(batch->held[i]);
}

int
conn_write_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                     size_t length, nghttp2_data_source *source, void *argument)
{
    (void)session;
    struct conn *conn = argument;
    struct stream *stream = source->ptr;
    struct batch *batch = current_batch(conn);
    /* Needs room to copy all of it: the frame may span many small chunks. */
    if (!has_room(batch, FRAME_HEADER_BYTES + length)) {
        batch->is_full = true;
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    add_copy(conn, batch, header, FRAME_HEADER_BYTES);
    for (size_t left = length; left;) {
        const uint8_t *bytes;
        struct chunk *chunk;
        size_t part = chunk_queue_peek(&stream->out, left, &bytes, &chunk);
        if (part < MIN_ZERO_COPY_BYTES || batch->count + 1 >= MAX_PIECES)
            add_copy(conn, batch, bytes, part);
        else
            add_held(batch, chunk, bytes, part);
        chunk_queue_advance(&stream->out, part);
        left -= part;
    }
    stream->has_progress = true;
    stream->is_sent = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    conn->last_found = stream; /* its trailers are sent next */
    stream->events->written(stream, length);
    return 0;
}

/*
 * Fills the batch from the session. Returns false if the session failed and the connection is dead.
 */
static bool
gather(struct conn *conn, struct batch *batch)
{
    batch->count = batch->buffered = batch->total = 0;
    batch->is_full = false;
    conn->batch = batch;
    /* Stop at half of the buffer, so that a DATA frame still fits. */
    while (!batch->is_full && has_room(batch, LOOP_WRITE_BYTES / 2)) {
        const uint8_t *bytes;
        ssize_t size = nghttp2_session_mem_send(conn->session, &bytes);
        if (size < 0) {
            conn_kill(conn, "HTTP/2: %s", nghttp2_strerror((int)size));
            release_held(batch, 0);
            return false;
        }
        if (size == 0)
            break;
        /* DATA taken meanwhile may have filled the buffer. */
        if (batch->buffered + (size_t)size <= LOOP_WRITE_BYTES)
            add_copy(conn, batch, bytes, (size_t)size);
        else
            add_chunk(batch, bytes, (size_t)size);
    }
    conn->counters->bytes_out += batch->total;
    return true;
}

/* Returns false if the socket is full or the write failed. */
static bool
send_some(struct conn *conn, struct iovec *pieces, size_t count, size_t *sent)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    ssize_t written;
    do
        written = sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (written < 0 && errno == EINTR);
    if (written < 0 && errno != EAGAIN)
        conn->write_errno = errno;
    *sent = written < 0 ? 0 : (size_t)written;
    return written >= 0;
}

/* ---- plaintext ---- */

/*
 * Writes the pieces from `*first` on and advances past what was written. Returns false if the
 * socket is full or the write failed.
 */
static bool
write_pieces(struct conn *conn, struct batch *batch, size_t *first)
{
    while (*first < batch->count) {
        size_t left = 0;
        if (!send_some(conn, batch->pieces + *first, batch->count - *first, &left))
            return false;
        while (*first < batch->count && left >= batch->pieces[*first].iov_len) {
            left -= batch->pieces[*first].iov_len;
            chunk_release(batch->held[*first]);
            ++*first;
        }
        if (*first < batch->count) {
            struct iovec *piece = &batch->pieces[*first];
            piece->iov_base = (uint8_t *)piece->iov_base + left;
            piece->iov_len -= left;
        }
    }
    return true;
}

/* The next connection reuses the loop's buffer, so its bytes are copied. */
static void
keep_leftover(struct conn *conn, const struct batch *batch, size_t first)
{
    struct leftover *leftover = memory_new(sizeof *leftover + batch->buffered);
    leftover->first = first;
    leftover->batch = *batch;
    size_t copied = 0;
    for (size_t i = first; i < batch->count; i++) {
        struct iovec *piece = &leftover->batch.pieces[i];
        if (batch->held[i])
            continue;
        memcpy(leftover->bytes + copied, piece->iov_base, piece->iov_len);
        piece->iov_base = leftover->bytes + copied;
        copied += piece->iov_len;
    }
    conn->leftover = leftover;
}

static bool
write_leftover(struct conn *conn)
{
    struct leftover *leftover = conn->leftover;
    if (!leftover)
        return true;
    if (!write_pieces(conn, &leftover->batch, &leftover->first))
        return false;
    free(STEAL(conn->leftover));
    return true;
}

static bool
write_plain(struct conn *conn, struct batch *batch)
{
    size_t first = 0;
    if (write_pieces(conn, batch, &first))
        return true;
    if (conn->write_errno)
        release_held(batch, first);
    else
        keep_leftover(conn, batch, first);
    return false;
}

/* ---- TLS ---- */

static bool
write_cipher(struct conn *conn)
{
    while (conn->cipher_written < conn->cipher.size) {
        struct iovec rest = {conn->cipher.bytes + conn->cipher_written,
                             conn->cipher.size - conn->cipher_written};
        size_t written = 0;
        if (!send_some(conn, &rest, 1, &written))
            return false;
        conn->cipher_written += written;
    }
    buffer_clear(&conn->cipher);
    conn->cipher_written = 0;
    return true;
}

static void
encrypt(struct conn *conn, struct batch *batch)
{
    struct error *error AUTO(error_cleanup) = NULL;
    for (size_t i = 0; i < batch->count && !error; i++)
        error = tls_session_write(conn->tls, batch->pieces[i].iov_base, batch->pieces[i].iov_len);
    release_held(batch, 0);
    if (error)
        conn_kill(conn, "TLS: %s", error->message);
}

/* ---- both ---- */

void
conn_write_ack(struct conn *conn)
{
    loop_disarm(conn->loop, &conn->ack_delay);
    conn->ping_ack_due = false;
    int failed = nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_ACK, conn->ack);
    if (failed)
        conn_kill(conn, "HTTP/2: %s", nghttp2_strerror(failed));
}

bool
conn_write_all(struct conn *conn)
{
    if (conn->tls)
        tls_session_take(conn->tls, &conn->cipher);
    if (!write_leftover(conn) || !write_cipher(conn))
        return false;
    /* If the connection is about to close, no other output will follow: do not delay the ack. */
    if (conn->ping_ack_due &&
        (nghttp2_session_want_write(conn->session) || !nghttp2_session_want_read(conn->session)))
        conn_write_ack(conn);
    struct batch batch;
    while (conn->is_established && gather(conn, &batch) && batch.count) {
        if (!conn->tls) {
            if (!write_plain(conn, &batch))
                return false;
            continue;
        }
        encrypt(conn, &batch);
        tls_session_take(conn->tls, &conn->cipher);
        if (!write_cipher(conn))
            return false;
    }
    return true;
}

void
conn_write_close_notify(struct conn *conn)
{
    if (!conn->tls || conn->is_write_blocked || conn->cipher.size)
        return;
    tls_session_shutdown(conn->tls);
    tls_session_take(conn->tls, &conn->cipher);
    /* Best effort: if the socket is full, the peer is not reading. */
    if (conn->cipher.size)
        (void)!send(conn->fd, conn->cipher.bytes, conn->cipher.size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
conn_write_drop(struct conn *conn)
{
    if (!conn->leftover)
        return;
    release_held(&conn->leftover->batch, conn->leftover->first);
    free(STEAL(conn->leftover));
}
