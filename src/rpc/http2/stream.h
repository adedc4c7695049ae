/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP/2 stream, of a server's or a client's connection: bytes queue to go out, events come in. Loop thread only; internal
 * to rpc/. What a stream means (a call, a client's call, half of a proxied one) is its owner's business, told by its events.
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

/* In place of an HTTP/2 error: the connection is gone, and the stream with it. */
#define STREAM_CONNECTION_LOST UINT32_MAX

struct stream_events {
    /* A header block, the first or the trailing one. It is gone after the call, unless the owner keeps its texts (field_block_keep). */
    void (*headers)(struct stream *stream, struct field_block *block, bool end_of_stream);
    /* Bytes of the body. The connection's window is given back already; the owner gives back the stream's (stream_consume). */
    void (*data)(struct stream *stream, const uint8_t *bytes, size_t size);
    /* The peer has sent all. */
    void (*ended)(struct stream *stream);
    /* So many bytes have left the queue. */
    void (*written)(struct stream *stream, size_t size);
    /* The stream is gone, for good or bad; the owner may free it. `why` is NULL after a regular end; the error is HTTP/2's, or
       STREAM_CONNECTION_LOST. */
    void (*closed)(struct stream *stream, uint32_t http2_error, const char *why);
};

struct stream {
    struct conn *conn; /* NULL before it begins and after it is closed */
    int32_t id;
    const struct stream_events *events;
    struct chunk_queue out;
    bool out_ended;         /* nothing will be pushed any more */
    bool in_ended;          /* the peer has sent all */
    bool is_sent;           /* and so has this side, without trailers */
    bool waits_for_data;    /* nghttp2 asks again only after a resume */
    bool never_sent;        /* the request's headers could not be sent: safe to try elsewhere */
    bool headers_too_large; /* they never can be */
    bool has_moved;         /* bytes have left the queue since somebody looked */
    uint64_t stalled_since; /* when somebody looked first and nothing had moved */
    nghttp2_nv *trailers;   /* go out behind the data; must live until the stream is closed */
    size_t trailer_count;
    struct stream *next; /* of the connection's streams */
    struct stream **link;
};

/* Begins a request on a client's connection. The texts of the fields must live until the stream is closed. */
MUST_CHECK struct error *stream_begin_request(struct stream *stream, struct conn *conn,
                                              const nghttp2_nv *fields, size_t count);

/* Sends the response's headers; `end`: and nothing else (Trailers-Only, HTTP errors). */
void stream_send_headers(struct stream *stream, const nghttp2_nv *fields, size_t count, bool end);

/* Queues bytes behind the headers. Takes the chunk. */
void stream_push(struct stream *stream, struct chunk *chunk);

/* Sends what is queued since the last time (push does it as well, for itself). */
void stream_resume(struct stream *stream);

/* No more bytes: the trailers follow (none: the stream ends with its data). */
void stream_end(struct stream *stream, nghttp2_nv *trailers, size_t count);

void stream_reset(struct stream *stream, uint32_t http2_error);

/* Client: has all of this side been sent? */
bool stream_is_sent(const struct stream *stream);

/* Gives `size` bytes of the stream's window back to the peer, if it can still use them. */
void stream_consume(struct stream *stream, size_t size);

#endif
