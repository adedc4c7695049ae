/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP/1 request, strictly read: what RFC 9112 allows a server to refuse is refused,
 * so that no proxy in front can understand a request in another way.
 */
#ifndef WEB_HTTP_REQUEST_H
#define WEB_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define HTTP_REQUEST_MAX_HEAD 8192
#define HTTP_REQUEST_MAX_BODY (64u * 1024)
#define HTTP_REQUEST_MAX_FIELDS 64

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_OTHER };

/* Texts point into the head that was parsed. A field that was not sent is NULL. */
struct http_request {
    enum http_method method;
    const char *path;  /* "/metrics"; not decoded */
    const char *query; /* after the question mark; "" */
    unsigned minor;    /* of the version: 0 or 1 */
    const char *host;
    const char *origin;
    const char *fetch_site; /* Sec-Fetch-Site */
    const char *content_type;
    const char *authorization;
    const char *accept_encoding;
    const char *if_none_match;
    size_t body_size; /* Content-Length */
    const char *body; /* set by the server */
};

/* The size of the head, up to and with its empty line; 0: it is not complete. */
size_t http_request_head_size(const char *bytes, size_t size);

/*
 * Parses the head in place; `bytes` has `size` bytes, ends with the empty line, and is changed.
 * INVALID_ARGUMENT: it is no request. OUT_OF_RANGE: the body is too large. UNIMPLEMENTED: it has a
 * Transfer-Encoding. The message quotes nothing of the request.
 */
MUST_CHECK struct error *http_request_parse(char *bytes, size_t size, struct http_request *out);

/*
 * The decoded value of a parameter in the query, in the arena; "": there is none. INVALID_ARGUMENT:
 * its encoding is wrong, or it has control characters.
 */
MUST_CHECK struct error *http_request_parameter(const struct http_request *request,
                                                const char *name, struct arena *arena,
                                                const char **out);

/* Does Accept-Encoding allow gzip? */
bool http_request_accepts_gzip(const struct http_request *request);

#endif
