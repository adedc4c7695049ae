/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a connection, and reading from it. conn_session.c has the HTTP/2 session,
 * conn_write.c the writing, stream.c the streams.
 */
#include "rpc/http2/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "rpc/http2/conn_internal.h"

/* If more frames than this wait for a peer that does not read, reading from it stops. */
#define MAX_OUTBOUND_FRAMES 4096u
#define READS_PER_TURN 4
#define ACK_DELAY_NS (5 * UINT64_C(1000000))
#define QUIET_NS (1000 * UINT64_C(1000000))
#define LINGER_NS (20 * UINT64_C(1000000))

/*
 * A request can take a thousand times as long to process as the bytes of a large message. To keep
 * loop turns short, the large buffer is used only while reads bring few requests.
 */
#define SMALL_READ_BYTES 8192u
#define FEW_REQUESTS 64u

/* ---- reading ---- */

static bool
begins_with(const uint8_t *bytes, size_t size, const char *wanted)
{
    return size >= strlen(wanted) && memcmp(bytes, wanted, strlen(wanted)) == 0;
}

/* Names the protocol that the peer's first bytes look like. */
static void
kill_not_http2(struct conn *conn, const uint8_t *bytes, size_t size)
{
    if (begins_with(bytes, size, "HTTP/1."))
        conn_kill(conn, "the peer speaks HTTP/1, not HTTP/2");
    else if (begins_with(bytes, size, "\x15\x03") || begins_with(bytes, size, "\x16\x03"))
        conn_kill(conn, "the peer speaks TLS, not plaintext HTTP/2");
    else
        conn_kill(conn, "the peer does not speak HTTP/2");
}

static void
feed_session(struct conn *conn, const uint8_t *bytes, size_t size)
{
    conn->counters->bytes_in += size;
    int32_t window_used = nghttp2_session_get_effective_recv_data_length(conn->session);
    ssize_t taken = nghttp2_session_mem_recv(conn->session, bytes, size);
    conn_session_consume(conn, window_used);
    if (conn->not_http2 || taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        kill_not_http2(conn, bytes, size);
    } else if (taken < 0 && !conn->is_dead) {
        nghttp2_session_terminate_session(conn->session, NGHTTP2_ENHANCE_YOUR_CALM);
        conn_kill(conn, "HTTP/2: %s", nghttp2_strerror((int)taken));
    }
    conn_mark_dirty(conn);
}

static void
mark_established(struct conn *conn)
{
    conn->is_established = true;
    if (conn->tls) {
        const char *const *names;
        size_t count = tls_session_peer_names(conn->tls, &names);
        peer_set_names(conn->peer, names, count);
    }
    if (conn->events->established)
        conn->events->established(conn);
    conn_mark_dirty(conn);
}

static void
feed_tls(struct conn *conn, const uint8_t *bytes, size_t size)
{
    static const size_t room = 16384;
    uint8_t plain[16384];
    struct error *error AUTO(error_cleanup) = tls_session_feed(conn->tls, bytes, size);
    size_t got = 1;
    bool closed = false;
    while (!error && got && !closed && !conn->is_dead) {
        error = tls_session_read(conn->tls, plain, room, &got, &closed);
        if (!error && !conn->is_established && tls_session_is_established(conn->tls))
            mark_established(conn);
        if (!error && got)
            feed_session(conn, plain, got);
    }
    if (error) {
        conn->tls_failed = !conn->is_established;
        conn_kill(conn, "TLS: %s", error->message);
    } else if (closed) {
        conn_kill(conn, "the peer closed the connection");
    }
    conn_mark_dirty(conn);
}

static void
feed(struct conn *conn, const uint8_t *bytes, size_t size)
{
    if (conn->tls)
        feed_tls(conn, bytes, size);
    else
        feed_session(conn, bytes, size);
}

/*
 * A client that has closed its connection has given up what it asked for. Usually requests are read
 * before that; but if this process was stopped, both have arrived meanwhile.
 */
static bool
has_given_up(const struct conn *conn)
{
    struct pollfd poll_fd = {.fd = conn->fd, .events = POLLRDHUP};
    bool is_new = conn->last_read_at == conn->opened_at;
    bool was_quiet = is_new || timers_now() - conn->last_read_at > QUIET_NS;
    return conn->is_server && was_quiet && poll(&poll_fd, 1, 0) > 0;
}

static void
receive(struct conn *conn)
{
    if (has_given_up(conn)) {
        conn_kill(conn, "the peer closed the connection");
        return;
    }
    for (int i = 0; i < READS_PER_TURN && !conn->is_dead; i++) {
        size_t room = conn->reads_large ? LOOP_READ_BYTES : SMALL_READ_BYTES;
        size_t requests = conn->opened_streams;
        ssize_t got = recv(conn->fd, conn->loop->read_buffer, room, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got < 0) {
            conn_kill(conn, "read: %s", strerrordesc_np(errno));
            return;
        }
        if (got == 0) {
            conn_kill(conn, "the peer closed the connection");
            return;
        }
        conn->last_read_at = timers_now();
        feed(conn, conn->loop->read_buffer, (size_t)got);
        requests = conn->opened_streams - requests;
        conn->reads_large = requests < FEW_REQUESTS && (size_t)got == room;
        if (!conn->reads_large)
            return;
    }
}

static void on_poll(uv_poll_t *poll, int status, int events);

/*
 * Selects the events to poll for. Backpressure: a peer that reads no responses may not send
 * requests.
 */
static void
watch(struct conn *conn)
{
    bool flooded = conn->is_write_blocked &&
                   nghttp2_session_get_outbound_queue_size(conn->session) > MAX_OUTBOUND_FRAMES;
    int events = (flooded ? 0 : UV_READABLE) | (conn->is_write_blocked ? UV_WRITABLE : 0);
    if (events == conn->watched)
        return;
    conn->watched = events;
    if (events)
        uv_poll_start(&conn->poll, events, on_poll);
    else
        uv_poll_stop(&conn->poll);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct conn *conn = poll->data;
    loop_note_awake(conn->loop);
    conn->loop->had_input = true;
    if (conn->is_dead)
        return;
    if (events & UV_WRITABLE) {
        conn->is_write_blocked = false;
        conn_mark_dirty(conn);
    }
    if (events & UV_READABLE || status < 0)
        receive(conn);
    /* libuv has stopped polling. If reading has not found an error, nothing later will. */
    if (status < 0)
        conn_kill(conn, "the socket failed");
    loop_flush_early(conn->loop); /* may free this connection */
}

/* ---- close ---- */

static void
free_conn(uv_handle_t *poll)
{
    struct conn *conn = poll->data;
    struct linger none = {.l_onoff = 1};
    if (conn->is_reset)
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(conn->fd);
    free(conn);
}

static void
destroy(struct conn *conn)
{
    const char *why = conn->why_dead ? conn->why_dead : "connection closed";
    conn_write_close_notify(conn);
    loop_forget_output(conn->loop, &conn->output);
    conn_session_end(conn, why);
    conn->events->closed(conn, why);
    nghttp2_session_del(conn->session);
    tls_session_free(conn->tls);
    conn_write_drop(conn);
    buffer_clear(&conn->cipher);
    peer_release(conn->peer);
    free(conn->why_dead);
    free(conn->goaway_text);
    uv_close((uv_handle_t *)&conn->poll, free_conn);
}

/* ---- writing ---- */

/*
 * Everything is sent, and the peer has sent GOAWAY. It may have sent a ping after that. Closing
 * with unread bytes would reset the connection, and the peer could lose what was written.
 */
static bool
must_linger(struct conn *conn)
{
    if (!conn->received_goaway || conn->has_lingered)
        return false;
    if (!timer_is_armed(&conn->linger))
        loop_arm(conn->loop, &conn->linger, timers_now() + LINGER_NS);
    return true;
}

/* The write failed. Reads what the peer sent before it closed, most likely a GOAWAY. */
static void
fail_write(struct conn *conn)
{
    if (!conn->is_dead)
        receive(conn);
    conn_kill(conn, "write: %s", strerrordesc_np(conn->write_errno));
}

static void
flush(struct output *output)
{
    struct conn *conn = CONTAINER_OF(output, struct conn, output);
    bool was_dead = conn->is_dead;
    bool was_write_blocked = conn->is_write_blocked;
    /* A dead connection is flushed too: a GOAWAY or a TLS alert tells the peer why. */
    bool done = !conn->is_write_blocked && conn_write_all(conn);
    if (conn->write_errno)
        fail_write(conn);
    conn->is_write_blocked = !done;
    if (conn->is_write_blocked && !was_write_blocked)
        conn->write_blocked_since = timers_now();
    bool finished = done && conn->is_established && !nghttp2_session_want_read(conn->session) &&
                    !nghttp2_session_want_write(conn->session);
    if (was_dead || conn->is_dead || (finished && !must_linger(conn))) {
        destroy(conn);
        return;
    }
    watch(conn);
    if (conn->ping_ack_due && !timer_is_armed(&conn->ack_delay))
        loop_arm(conn->loop, &conn->ack_delay, timers_now() + ACK_DELAY_NS);
}

/* ---- open ---- */

/*
 * A peer that is gone without a word: keepalive finds it while the connection is idle. While bytes
 * are on their way, only the limit for their acknowledgement does; without it a sender would wait
 * for a quarter of an hour.
 */
static void
set_socket_options(int fd)
{
    int on = 1, idle_s = 60, interval_s = 15, probes = 4;
    unsigned unacknowledged_ms = 60000;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        return; /* not TCP */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

struct conn *
conn_new(struct loop *loop, int fd, struct tls_session *tls, const struct conn_options *options,
         const struct conn_events *events, void *owner)
{
    struct conn *conn = memory_zeroed(sizeof *conn);
    conn->loop = loop;
    conn->output.flush = flush;
    conn->events = events;
    conn->owner = owner;
    conn->fd = fd;
    conn->tls = tls;
    conn->is_server = options->is_server;
    conn->counters = options->counters;
    conn->peer = peer_new(fd, account_new(&loop->admission));
    conn->opened_at = conn->last_read_at = timers_now();
    set_socket_options(fd);
    conn_session_open(conn, options);
    uv_poll_init(&loop->uv, &conn->poll, fd);
    conn->poll.data = conn;
    watch(conn);
    return conn;
}

void
conn_start(struct conn *conn)
{
    if (!conn->tls)
        mark_established(conn);
    else if (!conn->is_server)
        feed_tls(conn, NULL, 0); /* the client starts the handshake */
    conn_mark_dirty(conn);
}
