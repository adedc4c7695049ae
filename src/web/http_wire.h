/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the HTTP server: bytes in and out, each with a deadline and a way to stop. */
#ifndef WEB_HTTP_WIRE_H
#define WEB_HTTP_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "web/http.h"

struct http_wire {
    int fd;      /* non-blocking */
    int stop_fd; /* readable: the server ends */
    char head[HTTP_REQUEST_MAX_HEAD + 1];
    struct buffer body;
};

/*
 * Reads the request with its body. The error tells what to answer: INVALID_ARGUMENT and the others
 * of http_request_parse. UNAVAILABLE: there is nobody to answer.
 */
MUST_CHECK struct error *http_wire_read(struct http_wire *wire, struct http_request *out);

/* False: the client has gone, or takes too long, or the server ends. */
bool http_wire_send(const struct http_wire *wire, const void *bytes, size_t size,
                    unsigned timeout_ms);

/* Sends the answer; its stream, if it has one, is left to the caller. */
bool http_wire_answer(const struct http_wire *wire, const struct http_answer *answer, bool is_head);

/* Waits until the other descriptor is readable or the time is over. False: as http_wire_send. */
bool http_wire_wait(const struct http_wire *wire, int fd, int timeout_ms);

/*
 * Reads what the client still sends, for a moment: closing with unread bytes would reset the
 * connection, and the client might lose the answer.
 */
void http_wire_end(const struct http_wire *wire);

#endif
