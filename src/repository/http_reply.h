/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses replies of HTTP/1.1 servers (RFC 9112), strictly: what is not clear is refused, because a
 * misread length would make one reply's body the next reply's head.
 */
#ifndef REPOSITORY_HTTP_REPLY_H
#define REPOSITORY_HTTP_REPLY_H

#include "base/buffer.h"
#include "base/error.h"

#define HTTP_HEAD_MAX 16384u

struct http_reply {
    unsigned status;
    bool has_length;
    uint64_t length;        /* Content-Length */
    int64_t date, modified; /* Date and Last-Modified in Unix time; 0: none that is understood */
    bool is_chunked;
    bool closes; /* the server closes the connection behind it */
};

/*
 * Parses the head in `bytes`. `*used` is its size; 0: more bytes are needed. UNAVAILABLE: this is
 * no reply, or the head is too long.
 */
MUST_CHECK struct error *http_reply_parse(const uint8_t *bytes, size_t size,
                                          struct http_reply *reply, size_t *used);

/* ---- chunked bodies ---- */

enum http_chunk_state {
    HTTP_CHUNK_SIZE,    /* in the digits */
    HTTP_CHUNK_REST,    /* in what follows the digits on the line */
    HTTP_CHUNK_DATA,    /* in the data */
    HTTP_CHUNK_END,     /* in the line's end behind the data */
    HTTP_CHUNK_TRAILER, /* in the lines behind the last chunk */
    HTTP_CHUNK_DONE
};

struct http_chunked {
    enum http_chunk_state state;
    uint64_t left;   /* bytes of the chunk */
    unsigned digits; /* of its size */
    size_t line;     /* characters of the line so far */
    size_t extra;    /* characters that are no data, since the last chunk */
};

/*
 * Takes bytes of the body and appends the data to `body`, up to `limit` bytes in all. `*used` is
 * how many were taken: all, unless the state is HTTP_CHUNK_DONE.
 */
MUST_CHECK struct error *http_chunked_take(struct http_chunked *chunked, const uint8_t *bytes,
                                           size_t size, size_t limit, struct buffer *body,
                                           size_t *used);

#endif
