/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a connection of the HTTP server: see http_wire.h. */
#include "web/http_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define REQUEST_MS 5000
#define ANSWER_MS 15000
#define LINGER_MS 500
#define MOST_LINGER_BYTES ((size_t)4 << 20)

/* ---- waiting ---- */

/* Waits for `events` until the deadline. False: the time is over, or the server ends. */
static bool
wait_for(const struct http_wire *wire, short events, uint64_t deadline_ms)
{
    struct pollfd watched[] = {{wire->fd, events, 0}, {wire->stop_fd, POLLIN, 0}};
    for (;;) {
        uint64_t now_ms = clock_now_ms();
        if (now_ms >= deadline_ms)
            return false;
        int ready = poll(watched, 2, (int)(deadline_ms - now_ms));
        if (ready < 0 && errno == EINTR)
            continue;
        return ready > 0 && !watched[1].revents;
    }
}

/* Is it worth trying again, when there is something to do? */
static bool
must_wait(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK;
}

/* At least one byte, at most `room`. 0: the client has gone, or it took too long. */
static size_t
receive(const struct http_wire *wire, void *bytes, size_t room, uint64_t deadline_ms)
{
    for (;;) {
        ssize_t got = recv(wire->fd, bytes, room, 0);
        if (got >= 0)
            return (size_t)got;
        if (errno == EINTR)
            continue;
        if (!must_wait() || !wait_for(wire, POLLIN, deadline_ms))
            return 0;
    }
}

bool
http_wire_send(const struct http_wire *wire, const void *bytes, size_t size, unsigned timeout_ms)
{
    uint64_t deadline_ms = clock_now_ms() + timeout_ms;
    const char *next = bytes;
    while (size) {
        ssize_t sent = send(wire->fd, next, size, MSG_NOSIGNAL);
        if (sent > 0) {
            next += sent;
            size -= (size_t)sent;
        } else if (sent < 0 && errno != EINTR &&
                   (!must_wait() || !wait_for(wire, POLLOUT, deadline_ms))) {
            return false;
        }
        if (size && clock_now_ms() >= deadline_ms)
            return false;
    }
    return true;
}

bool
http_wire_wait(const struct http_wire *wire, int fd, int timeout_ms)
{
    struct pollfd watched[] = {
        {wire->fd, POLLRDHUP, 0}, {wire->stop_fd, POLLIN, 0}, {fd, POLLIN, 0}};
    int ready = poll(watched, 3, timeout_ms);
    return ready >= 0 ? !watched[0].revents && !watched[1].revents : errno == EINTR;
}

void
http_wire_end(const struct http_wire *wire)
{
    char scrap[4096];
    uint64_t deadline_ms = clock_now_ms() + LINGER_MS;
    size_t left = MOST_LINGER_BYTES, got = 1;
    shutdown(wire->fd, SHUT_WR);
    while (got && left > sizeof scrap && clock_now_ms() < deadline_ms) {
        got = receive(wire, scrap, sizeof scrap, deadline_ms);
        left -= got;
    }
}

/* ---- the request ---- */

static struct error *
nobody(void)
{
    return error_new(CODE_UNAVAILABLE, "the client has gone, or was too slow");
}

/* Reads until the head is complete; `*used` is its size, `*size` that of all bytes read. */
static struct error *
read_head(struct http_wire *wire, uint64_t deadline_ms, size_t *used, size_t *size)
{
    *size = 0;
    do {
        if (*size == HTTP_REQUEST_MAX_HEAD)
            return error_new(CODE_INVALID_ARGUMENT, "the request is wrong: its head is too large");
        size_t got = receive(wire, wire->head + *size, HTTP_REQUEST_MAX_HEAD - *size, deadline_ms);
        if (!got)
            return nobody();
        *size += got;
        *used = http_request_head_size(wire->head, *size);
    } while (!*used);
    return NULL;
}

static struct error *
read_body(struct http_wire *wire, size_t wanted, uint64_t deadline_ms)
{
    while (wire->body.size < wanted) {
        size_t room = wanted - wire->body.size;
        size_t got = receive(wire, buffer_reserve(&wire->body, room), room, deadline_ms);
        if (!got)
            return nobody();
        wire->body.size += got;
    }
    return NULL;
}

struct error *
http_wire_read(struct http_wire *wire, struct http_request *out)
{
    uint64_t deadline_ms = clock_now_ms() + REQUEST_MS;
    size_t used, size;
    struct error *error = read_head(wire, deadline_ms, &used, &size);
    if (error)
        return error;
    error = http_request_parse(wire->head, used, out);
    if (error)
        return error;
    size_t extra = size - used;
    buffer_append(&wire->body, wire->head + used, extra < out->body_size ? extra : out->body_size);
    error = read_body(wire, out->body_size, deadline_ms);
    out->body = buffer_text(&wire->body);
    return error;
}

/* ---- the answer ---- */

static const char *
reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {421, "Misdirected Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < COUNT_OF(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Error";
}

void
http_answer_text(struct http_answer *answer, int status, const char *text)
{
    answer->status = status;
    answer->content_type = NULL;
    buffer_print(&answer->body, "%d %s%s%s\n", status, reason(status), text[0] ? ": " : "", text);
}

/* What every answer says: nothing may be guessed, framed, stored or told to others. */
#define SECURITY_FIELDS                                                                            \
    "X-Content-Type-Options: nosniff\r\n"                                                          \
    "Referrer-Policy: no-referrer\r\n"                                                             \
    "Cross-Origin-Resource-Policy: same-origin\r\n"                                                \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; worker-src 'self'; "          \
    "style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "                \
    "form-action 'none'; frame-ancestors 'none'\r\n"

bool
http_wire_answer(const struct http_wire *wire, const struct http_answer *answer, bool is_head)
{
    struct buffer out AUTO(buffer_clear) = {0};
    const void *body = answer->fixed ? answer->fixed : answer->body.bytes;
    size_t size = answer->fixed ? answer->fixed_size : answer->body.size;
    buffer_print(&out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nCache-Control: %s\r\n",
                 answer->status, reason(answer->status),
                 answer->content_type ? answer->content_type : "text/plain; charset=utf-8",
                 answer->cache ? answer->cache : "no-store");
    if (!answer->stream && answer->status != 304)
        buffer_print(&out, "Content-Length: %zu\r\n", size);
    buffer_append(&out, answer->fields.bytes, answer->fields.size);
    buffer_append_text(&out, SECURITY_FIELDS "Connection: close\r\n\r\n");
    if (!http_wire_send(wire, out.bytes, out.size, ANSWER_MS))
        return false;
    return is_head || !size || http_wire_send(wire, body, size, ANSWER_MS);
}
