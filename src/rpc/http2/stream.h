/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP/2 stream of a server's or client's connection: a queue of outgoing bytes, and events for
 * what comes in. Loop thread only; internal to rpc/. The owner decides by its events what the
 * stream is: a server call, a client call or one side of a proxied call.
 */
#ifndef RPC_HTTP2_STREAM_H
#define RPC_HTTP2_STREAM_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/http2/chunk.h"
#include "rpc/http2/field_block.h"

struct conn;
struct stream;

/* Passed instead of an HTTP/2 error code when the connection was lost. */
#define STREAM_CONNECTION_LOST UINT32_MAX

struct stream_events {
    /*
     * A complete header block: headers or trailers. The block is valid during the call only, unless
     * the owner keeps its text (field_block_keep).
     */
    void (*headers)(struct stream *stream, struct field_block *block, bool end_of_stream);
    /*
     * Bytes of the body. The connection's window has been updated already; the owner must update
     * the stream's (stream_consume).
     */
    void (*data)(struct stream *stream, const uint8_t *bytes, size_t size);
    /* The peer has ended its side (END_STREAM). */
    void (*ended)(struct stream *stream);
    /* `size` bytes have left the queue. */
    void (*written)(struct stream *stream, size_t size);
    /*
     * The stream is closed and the owner may free it. `why` is NULL after a regular end. The error
     * is an HTTP/2 code or STREAM_CONNECTION_LOST.
     */
    void (*closed)(struct stream *stream, uint32_t http2_error, const char *why);
};

struct stream {
    struct conn *conn; /* NULL before the stream begins and after it is closed */
    int32_t id;
    const struct stream_events *events;
    struct chunk_queue out;
    bool out_ended;      /* nothing more will be queued */
    bool in_ended;       /* the peer has sent END_STREAM */
    bool is_sent;        /* this side has sent END_STREAM on a DATA frame, without trailers */
    bool waits_for_data; /* nghttp2 has deferred the data until stream_resume */
    bool is_reset;       /* stream_reset was called */
    bool never_sent;     /* the request's headers were not sent: another connection may be tried */
    bool headers_too_large; /* the headers exceed the frame limit: no connection can send them */
    bool has_progress;      /* bytes have left the queue since the last check for stalls */
    uint64_t stalled_since; /* time of the first check that found no progress */
    nghttp2_nv *trailers;   /* sent after the data; must live until the stream is closed */
    size_t trailer_count;
    struct stream *next; /* in the connection's list */
    struct stream **link;
};

/*
 * Begins a request on a client's connection. The fields' text must live until the stream is closed.
 */
MUST_CHECK struct error *stream_begin_request(struct stream *stream, struct conn *conn,
                                              const nghttp2_nv *fields, size_t count);

/*
 * Sends the response's headers; `end` makes them the whole response (Trailers-Only, HTTP errors).
 */
void stream_send_headers(struct stream *stream, const nghttp2_nv *fields, size_t count, bool end);

/* Queues bytes to send. Takes over the caller's reference. */
void stream_push(struct stream *stream, struct chunk *chunk);

/* Tells nghttp2 that the queue has new data. stream_push calls it. */
void stream_resume(struct stream *stream);

/* Ends this side after the queued bytes, with the trailers if there are any. */
void stream_end(struct stream *stream, nghttp2_nv *trailers, size_t count);

/*
 * Only the first time: nghttp2 drops a request that it has not sent yet, but at a second reset
 * sends RST_STREAM for it. The peer does not know that stream, and closes the connection.
 */
void stream_reset(struct stream *stream, uint32_t http2_error);

/* Client: has this side sent END_STREAM? */
bool stream_is_sent(const struct stream *stream);

/* Returns `size` bytes to the stream's window, unless the peer has ended its side. */
void stream_consume(struct stream *stream, size_t size);

#endif
