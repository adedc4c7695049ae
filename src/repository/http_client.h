/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to an HTTP/1.1 server, with or without TLS. Requests follow each other; each waits
 * for its reply. Every wait is bounded. One thread at a time.
 */
#ifndef REPOSITORY_HTTP_CLIENT_H
#define REPOSITORY_HTTP_CLIENT_H

#include "repository/http_reply.h"

#define HTTP_WAIT_MS 30000u /* for the other side to take or give a byte */
#define HTTP_OVER_MS 1000u  /* the same, once nobody waits for the reply any more */

struct http_client;

/* How servers are trusted; for all connections. */
struct http_trust;

/* `authorities`: a file with certificates; NULL: those of the system. */
MUST_CHECK struct error *http_trust_open(const char *authorities, struct http_trust **out);
/* NULL is fine. */
void http_trust_close(struct http_trust *trust);

/* Tells whether nobody waits for a reply any more. Called often. */
struct http_watch {
    bool (*is_over)(const void *context);
    const void *context;
};

/* `trust` is NULL for plain HTTP. UNAVAILABLE: it can be tried again. */
MUST_CHECK struct error *http_client_open(const char *host, const char *port,
                                          const struct http_trust *trust,
                                          const struct http_watch *watch, struct http_client **out);
/* NULL is fine. */
void http_client_close(struct http_client *client);

/*
 * Sends a request, `head` with its empty line, and reads the reply; `body` gets up to `limit`
 * bytes. `has_no_body`: the reply to HEAD. Afterwards, `*is_usable` says whether the connection can
 * be used again. UNAVAILABLE: it was lost.
 */
struct http_exchange {
    const struct buffer *head;
    const uint8_t *bytes; /* the request's body */
    size_t size;
    bool has_no_body;
    size_t limit;
    struct http_reply reply;
    struct buffer *body;
    struct http_watch watch;
    bool is_usable;
};

MUST_CHECK struct error *http_client_exchange(struct http_client *client,
                                              struct http_exchange *exchange);

#endif
