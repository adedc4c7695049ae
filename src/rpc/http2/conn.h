/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: a socket, optionally TLS, and an HTTP/2 session. Loop thread only; internal to
 * rpc/.
 */
#ifndef RPC_HTTP2_CONN_H
#define RPC_HTTP2_CONN_H

#include <nghttp2/nghttp2.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buffer.h"
#include "rpc/http2/peer.h"
#include "rpc/http2/stream.h"
#include "rpc/loop/loop.h"
#include "rpc/tls/tls.h"

struct conn;
struct leftover;
struct listener;

struct conn_events {
    /* The TLS handshake is complete, or there is none: application data may be sent. */
    void (*established)(struct conn *conn);
    /* Server: the peer speaks HTTP/2, its SETTINGS are here. May set conn->refusal. */
    void (*introduced)(struct conn *conn);
    /* Server: the peer opens a stream. Returns the stream, embedded in its owner. */
    struct stream *(*open_stream)(struct conn *conn, int32_t id);
    /* Client: the peer may accept a new stream again (conn_can_open_stream). */
    void (*stream_available)(struct conn *conn);
    /* The peer accepts no new streams (GOAWAY); `text` is its debug data. */
    void (*going_away)(struct conn *conn, uint32_t http2_error, const char *text);
    /* The connection and its streams are closed; `conn` is freed after this call. */
    void (*closed)(struct conn *conn, const char *why);
};

struct conn_counters {
    uint64_t bytes_in;
    uint64_t bytes_out;
};

struct conn_options {
    bool is_server;
    bool is_local; /* unix socket: the peer is trusted not to flood */
    uint32_t max_streams;
    uint32_t max_header_bytes;
    struct conn_counters *counters;
};

struct conn {
    struct loop *loop;
    struct output output;
    const struct conn_events *events;
    void *owner;
    struct conn_counters *counters;
    struct peer *peer;
    uv_poll_t poll;
    int watched; /* libuv events currently polled for */
    int fd;
    bool is_server;
    bool is_established;
    bool tls_failed;       /* the TLS handshake failed, for example over an untrusted certificate */
    bool is_dead;          /* destroyed at the end of the loop turn */
    bool is_reset;         /* at its end: the kernel drops what it has not sent yet */
    bool is_write_blocked; /* the socket is full: waiting until it is writable */
    bool received_settings; /* the peer's SETTINGS frame has arrived */
    bool not_http2;         /* the peer's first bytes were not HTTP/2 */
    bool refuses_streams;   /* a final GOAWAY with the last stream id was sent */
    char *why_dead;
    char *goaway_text; /* debug data of the peer's GOAWAY */
    /* if set, sent as GOAWAY after the peer's SETTINGS; no stream is accepted */
    const char *refusal;
    nghttp2_session *session;
    struct tls_session *tls;
    struct buffer cipher; /* encrypted bytes to write */
    size_t cipher_written;
    struct leftover *leftover; /* plaintext that a full socket left unwritten */
    void *batch;               /* the batch of the current flush (conn_write.c) */
    int write_errno;           /* errno of a failed write, or 0 */
    struct stream *streams;
    struct stream *last_found; /* cache of find_stream */
    size_t stream_count;
    size_t opened_streams;    /* streams that the peer has opened so far */
    bool reads_large;         /* the last read filled its buffer and brought few requests */
    bool expects_late_frames; /* a closed stream may get frames that the peer sent before it knew */
    size_t unconsumed;        /* DATA bytes of the current read */
    struct field_block block; /* header block being decoded */
    bool ping_ack_due;        /* a ping waits for its ack */
    uint8_t ack[8];           /* payload of that ping */
    struct timer ack_delay;
    bool received_goaway;
    bool has_lingered;
    struct timer linger;
    unsigned pings_allowed;
    uint64_t pings_refilled_at;
    uint64_t opened_at;
    uint64_t last_read_at;
    uint64_t write_blocked_since;
    struct listener *awaited_by; /* server: the listener, until the peer is introduced */
    struct conn *next;           /* in the owner's list */
    struct conn **link;
};

/* Takes over the descriptor (connected, non-blocking) and the TLS session (NULL: plaintext). */
struct conn *conn_new(struct loop *loop, int fd, struct tls_session *tls,
                      const struct conn_options *options, const struct conn_events *events,
                      void *owner);

/* Call once the owner has registered the connection: it may call `established` at once. */
void conn_start(struct conn *conn);

/* Closes the connection at the end of this loop turn. The first reason given is kept. */
void conn_kill(struct conn *conn, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * The same for a peer that is silent. The kernel would go on sending what it has: a request that
 * the caller has given up and repeated elsewhere would arrive, and be carried out, much later.
 */
void conn_reset(struct conn *conn, const char *why);

/* Schedules a write at the end of this loop turn. Call after submitting to the session. */
void conn_mark_dirty(struct conn *conn);

/* Client: does the peer's limit of concurrent streams allow another one? */
bool conn_can_open_stream(const struct conn *conn);

/* Graceful shutdown in two steps: a notice first, then a GOAWAY with the last stream id. */
void conn_announce_shutdown(struct conn *conn);
void conn_refuse_new_streams(struct conn *conn);

#endif
