/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: a socket, TLS over it if so configured, and an HTTP/2 session. Loop thread only; internal to rpc/.
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

struct conn_events {
    /* TLS is agreed (or there is none): the first bytes may go. */
    void (*established)(struct conn *conn);
    /* Server: a peer opens a stream; gives its owner. */
    struct stream *(*open_stream)(struct conn *conn, int32_t id);
    /* Client: there may be room for a stream where there was none (conn_has_room). */
    void (*room)(struct conn *conn);
    /* The peer will take no new streams (GOAWAY); `text` is its debug data. */
    void (*going_away)(struct conn *conn, uint32_t http2_error, const char *text);
    /* The connection is gone, and so are its streams; `conn` is freed behind this call. */
    void (*closed)(struct conn *conn, const char *why);
};

struct conn_counters {
    uint64_t bytes_in;
    uint64_t bytes_out;
};

struct conn_options {
    bool is_server;
    bool is_local; /* a unix socket: its peer is trusted not to flood */
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
    int watched; /* the events that the loop is asked for */
    int fd;
    bool is_server;
    bool is_established;
    bool
        was_refused; /* the two do not agree on TLS: a certificate that is not trusted, for instance */
    bool is_dead;    /* to be destroyed at the end of the turn */
    bool is_stuck;        /* the socket takes no more; waits for it */
    bool peer_spoke;      /* the peer's preface or SETTINGS have come */
    bool is_stranger;     /* its first bytes were not HTTP/2's */
    bool refuses_streams; /* GOAWAY has the number of the last one that was taken */
    char *why_dead;
    char *goaway_text;   /* what the peer said when it went */
    const char *refusal; /* not NULL: told to the peer when it speaks, and that is all it gets */
    nghttp2_session *session;
    struct tls_session *tls;
    struct buffer cipher; /* encrypted bytes to write */
    size_t cipher_written;
    struct leftover *leftover; /* plain bytes to write, when stuck */
    void *gathering;           /* conn_write.c's: the batch of the flush that is running */
    int write_errno;           /* writing has failed; 0: it has not */
    struct stream *streams;
    struct stream *found; /* the one that was looked for last */
    size_t stream_count;
    size_t opened_streams;    /* by the peer, ever */
    bool reads_much;          /* what came last was a lot, and not a lot of requests */
    bool expects_late_frames; /* for streams that are closed, and the peer may not know it */
    size_t unconsumed;        /* bytes of DATA that came with this read */
    struct field_block block; /* that is being read */
    bool owes_ack;            /* of a ping */
    uint8_t ack[8];           /* what stands in it */
    struct timer ack_pause;
    bool peer_leaves; /* it has sent GOAWAY */
    bool has_lingered;
    struct timer linger;
    unsigned pings_allowed;
    uint64_t pings_refilled_at;
    uint64_t made_at;
    uint64_t last_read_at;
    uint64_t stuck_since;
    struct conn *next; /* of the owner's connections */
    struct conn **link;
};

/* Takes the descriptor (connected, non-blocking) and the TLS session (NULL: plaintext). */
struct conn *conn_new(struct loop *loop, int fd, struct tls_session *tls,
                      const struct conn_options *options, const struct conn_events *events,
                      void *owner);

/* To be called once the owner has the connection in its books: `established` may come at once. */
void conn_start(struct conn *conn);

/* Ends the connection at the end of this turn. The first reason counts. */
void conn_kill(struct conn *conn, const char *format, ...) PRINTF_LIKE(2, 3);

/* Something was submitted to the session: writes it at the end of this turn. */
void conn_mark_dirty(struct conn *conn);

/* Client: does the peer take one more stream now? */
bool conn_has_room(const struct conn *conn);

/* Says that no new streams are taken, first without and then with the number of the last one. */
void conn_announce_end(struct conn *conn);
void conn_refuse_new_streams(struct conn *conn);

#endif
