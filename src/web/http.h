/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP/1.1 server for /metrics and /healthz. Plaintext, GET and HEAD only, one request per
 * connection. Each connection has a thread; their number, time and size are bounded.
 */
#ifndef WEB_HTTP_H
#define WEB_HTTP_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"

struct http;

struct http_page {
    const char *path;
    const char *content_type;
    /* Fills the body and returns the HTTP status. Called from any thread. */
    int (*print)(void *context, struct buffer *body);
    void *context;
};

struct http_options {
    const char *address; /* "127.0.0.1:9100", ":9100" */
    const struct http_page *pages;
    size_t page_count;
    const struct log *log;
};

/* Listens, and serves on its own thread. The pages must outlive it. */
MUST_CHECK struct error *http_open(const struct http_options *options, struct http **out);

unsigned http_port(const struct http *http);

/* Waits for requests in progress. */
void http_close(struct http *http);

#endif
