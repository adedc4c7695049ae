/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: see connector.h.
 *
 * An attempt is allocated apart from its connector, because libuv closes handles and ends lookups
 * asynchronously. connector_stop only detaches the attempt, which then frees itself.
 *
 * The addresses of a name share the time: one that is silent must not keep the others from being
 * tried.
 */
#include "rpc/http2/connector.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "rpc/http2/socket.h"

struct connector_attempt {
    struct connector *connector; /* NULL: stopped or finished */
    struct loop *loop;
    struct timer timeout; /* of the lookup, or of the current address */
    uint64_t end;
    uv_getaddrinfo_t lookup;
    bool is_looking_up;
    struct addrinfo *found;
    struct addrinfo *next;
    uv_poll_t poll;
    bool is_polling;
    int fd;
    int last_errno;
};

static void try_next(struct connector_attempt *attempt);

/* ---- the end of an attempt ---- */

static void
free_attempt(struct connector_attempt *attempt)
{
    if (attempt->is_looking_up || attempt->is_polling)
        return; /* their callbacks call this again */
    uv_freeaddrinfo(attempt->found);
    free(attempt);
}

static void
on_poll_closed(uv_handle_t *handle)
{
    struct connector_attempt *attempt = handle->data;
    attempt->is_polling = false;
    if (attempt->connector)
        try_next(attempt);
    else
        free_attempt(attempt);
}

static void
finish(struct connector_attempt *attempt, int fd, struct error *error)
{
    struct connector *connector = STEAL(attempt->connector);
    loop_disarm(attempt->loop, &attempt->timeout);
    connector->attempt = NULL;
    if (attempt->is_polling && !uv_is_closing((uv_handle_t *)&attempt->poll))
        uv_close((uv_handle_t *)&attempt->poll, on_poll_closed);
    if (attempt->is_looking_up)
        uv_cancel((uv_req_t *)&attempt->lookup);
    if (fd < 0 && attempt->fd >= 0)
        close(attempt->fd);
    free_attempt(attempt);
    connector->done(connector, fd, error);
}

/* ---- trying addresses ---- */

/* The current address has failed: on_poll_closed tries the next one. */
static void
leave_address(struct connector_attempt *attempt, int failed)
{
    attempt->last_errno = failed;
    close(attempt->fd);
    attempt->fd = -1;
    uv_close((uv_handle_t *)&attempt->poll, on_poll_closed);
}

static void
on_timeout(struct timer *timer)
{
    struct connector_attempt *attempt = CONTAINER_OF(timer, struct connector_attempt, timeout);
    if (attempt->is_polling && attempt->next)
        leave_address(attempt, ETIMEDOUT);
    else
        finish(attempt, -1, error_new(CODE_UNAVAILABLE, "connecting timed out"));
}

static void
on_connected(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct connector_attempt *attempt = poll->data;
    int failed = 0;
    socklen_t size = sizeof failed;
    /* SO_ERROR has the real error; libuv reports EBADF for every failure. */
    getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &failed, &size);
    if (!failed && status < 0)
        failed = -status;
    if (!failed) {
        /* Stop polling first: the caller will poll this descriptor with its own handle. */
        uv_poll_stop(poll);
        finish(attempt, attempt->fd, NULL);
        return;
    }
    leave_address(attempt, failed);
}

static void
connect_to(struct connector_attempt *attempt, const struct sockaddr *name, socklen_t size)
{
    attempt->fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int failed = attempt->fd < 0 ? errno : 0;
    if (!failed && connect(attempt->fd, name, size) != 0)
        failed = errno;
    if (!failed) {
        finish(attempt, attempt->fd, NULL);
    } else if (failed == EINPROGRESS) {
        attempt->is_polling = true;
        attempt->poll.data = attempt;
        uv_poll_init(&attempt->loop->uv, &attempt->poll, attempt->fd);
        uv_poll_start(&attempt->poll, UV_WRITABLE, on_connected);
    } else {
        attempt->last_errno = failed;
        if (attempt->fd >= 0)
            close(attempt->fd);
        attempt->fd = -1;
        try_next(attempt);
    }
}

/* An equal part of the time that is left, for each address that is left. */
static void
limit_address(struct connector_attempt *attempt)
{
    uint64_t now = timers_now(), left = attempt->end > now ? attempt->end - now : 0;
    uint64_t count = 0;
    for (const struct addrinfo *at = attempt->next; at; at = at->ai_next)
        count++;
    loop_disarm(attempt->loop, &attempt->timeout);
    loop_arm(attempt->loop, &attempt->timeout, now + left / count);
}

static void
try_next(struct connector_attempt *attempt)
{
    struct addrinfo *at = attempt->next;
    if (!at) {
        char text[128];
        const char *why = strerror_r(attempt->last_errno, text, sizeof text);
        finish(attempt, -1, error_new(CODE_UNAVAILABLE, "%s", why));
        return;
    }
    limit_address(attempt);
    attempt->next = at->ai_next;
    connect_to(attempt, at->ai_addr, at->ai_addrlen);
}

static void
on_looked_up(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
    struct connector_attempt *attempt = lookup->data;
    attempt->is_looking_up = false;
    attempt->found = attempt->next = found;
    if (!attempt->connector)
        free_attempt(attempt);
    else if (status < 0)
        finish(attempt, -1,
               error_new(CODE_UNAVAILABLE, "look up the host: %s", uv_strerror(status)));
    else
        try_next(attempt);
}

static void
start_tcp(struct connector_attempt *attempt, const struct address *address)
{
    char port[8];
    snprintf(port, sizeof port, "%u", address->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};
    attempt->lookup.data = attempt;
    attempt->is_looking_up = true;
    int failed = uv_getaddrinfo(&attempt->loop->uv, &attempt->lookup, on_looked_up, address->host,
                                port, &hints);
    if (failed) {
        attempt->is_looking_up = false;
        finish(attempt, -1,
               error_new(CODE_UNAVAILABLE, "look up %s: %s", address->host, uv_strerror(failed)));
    }
}

/* A literal IP address needs no lookup, and so no thread of libuv's pool. */
static bool
start_literal(struct connector_attempt *attempt, const struct address *address)
{
    char port[8];
    snprintf(port, sizeof port, "%u", address->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST};
    if (getaddrinfo(address->host, port, &hints, &attempt->found) != 0)
        return false;
    attempt->next = attempt->found;
    try_next(attempt);
    return true;
}

void
connector_start(struct connector *connector, const struct address *address, uint64_t timeout_ns)
{
    struct connector_attempt *attempt = memory_zeroed(sizeof *attempt);
    attempt->connector = connector;
    attempt->loop = connector->loop;
    attempt->fd = -1;
    attempt->timeout.fire = on_timeout;
    connector->attempt = attempt;
    attempt->end = timers_now() + timeout_ns;
    loop_arm(connector->loop, &attempt->timeout, attempt->end);
    if (address_is_local(address)) {
        struct sockaddr_un name;
        socklen_t size = socket_name_of_unix(address, &name);
        connect_to(attempt, (struct sockaddr *)&name, size);
    } else if (!start_literal(attempt, address)) {
        start_tcp(attempt, address);
    }
}

void
connector_stop(struct connector *connector)
{
    struct connector_attempt *attempt = STEAL(connector->attempt);
    if (!attempt)
        return;
    attempt->connector = NULL;
    loop_disarm(attempt->loop, &attempt->timeout);
    if (attempt->is_polling && !uv_is_closing((uv_handle_t *)&attempt->poll))
        uv_close((uv_handle_t *)&attempt->poll, on_poll_closed);
    if (attempt->is_looking_up)
        uv_cancel((uv_req_t *)&attempt->lookup);
    if (attempt->fd >= 0)
        close(attempt->fd);
    free_attempt(attempt);
}
