/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP/1.1 server for the web page, its API, /metrics and /healthz. Plaintext, GET, HEAD
 * and POST, one request per connection. Each connection has a thread; their number, time and size
 * are bounded, for each class of request: what monitoring asks is answered whatever the page does.
 * When all connections are taken, the oldest one that is not of the page makes room.
 */
#ifndef WEB_HTTP_H
#define WEB_HTTP_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "web/http_request.h"

#define HTTP_MAX_PAGES 32  /* requests of the page and its API at a time */
#define HTTP_MAX_STREAMS 8 /* of them that never end */

struct http;
struct http_stream;

/* What a handler says. All zero but `status` is a good answer without a body. */
struct http_answer {
    int status;
    const char *content_type; /* NULL: text/plain */
    const char *cache;        /* Cache-Control; NULL: no-store */
    struct buffer body;
    const void *fixed; /* a body that outlives the answer, instead of `body`; or NULL */
    size_t fixed_size;
    struct buffer fields; /* more header fields, each with its line end */
    /*
     * Not NULL: after the header it sends the body in pieces, and returns when it has enough or
     * http_stream_send or http_stream_wait have failed.
     */
    void (*stream)(void *context, struct http_stream *stream);
    void *stream_context;
};

/* A text with the status, one line. */
void http_answer_text(struct http_answer *answer, int status, const char *text);

/* Of a path that ends with '/', all paths below it are served, too. */
struct http_page {
    const char *path;
    bool is_monitoring; /* does not count for HTTP_MAX_PAGES */
    bool takes_posts;
    /* Called from any thread; may block. */
    void (*serve)(void *context, const struct http_request *request, struct http_answer *answer);
    void *context;
};

struct http_options {
    const char *address; /* "127.0.0.1:9100", ":9100" */
    const struct http_page *pages;
    size_t page_count;
    /* Names that Host may have beside addresses and localhost. */
    const char *const *hosts;
    size_t host_count;
    const struct log *log;
};

/* Listens, and serves on its own thread. The pages must outlive it. */
MUST_CHECK struct error *http_open(const struct http_options *options, struct http **out);

unsigned http_port(const struct http *http);

/* Do all its addresses belong to the loopback, which other machines do not reach? */
bool http_is_loopback(const struct http *http);

/* Ends the streams and waits for the handlers in progress. */
void http_close(struct http *http);

/* ---- streams ---- */

/* False: the client has gone, or reads too slowly, or the server ends. */
MUST_CHECK bool http_stream_send(struct http_stream *stream, const void *bytes, size_t size);

/* Waits until `fd` is readable, for at most `timeout_ms`. False: as http_stream_send. */
MUST_CHECK bool http_stream_wait(struct http_stream *stream, int fd, int timeout_ms);

#endif
