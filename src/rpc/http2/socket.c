/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for addresses: see socket.h. */
#include "rpc/http2/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "rpc/http2/inherited.h"
#include "rpc/http2/port_owner.h"

/* For port 0: a port that is free at one address may be in use at another. */
#define MAX_PORT_ATTEMPTS 16

#define FIRST_OPEN_PORT 1024 /* as net.ipv4.ip_unprivileged_port_start is by default */

socklen_t
socket_name_of_unix(const struct address *address, struct sockaddr_un *out)
{
    size_t leading = address->kind == ADDRESS_UNIX_ABSTRACT ? 1 : 0;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + leading, address->path, address->path_size);
    return (socklen_t)(sizeof(sa_family_t) + leading + address->path_size + (leading ? 0 : 1));
}

/* ---- listening ---- */

/* One attempt to listen on all addresses of a host. */
struct attempt {
    const struct address *requested;
    const struct addrinfo *found;
    struct listeners *listeners;
    struct address missing[SOCKET_MAX_LISTENERS]; /* addresses that this machine does not have */
    size_t missing_count;
};

union socket_name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static struct address
address_of(const union socket_name *name)
{
    struct address address = {.kind = ADDRESS_TCP};
    bool is_v6 = name->any.sa_family == AF_INET6;
    address.port = ntohs(is_v6 ? name->v6.sin6_port : name->v4.sin_port);
    getnameinfo(&name->any, is_v6 ? sizeof name->v6 : sizeof name->v4, address.host,
                sizeof address.host, NULL, 0, NI_NUMERICHOST);
    return address;
}

static union socket_name
name_with_port(const struct addrinfo *at, uint16_t port)
{
    union socket_name name = {0};
    memcpy(&name, at->ai_addr, at->ai_addrlen);
    *(at->ai_family == AF_INET6 ? &name.v6.sin6_port : &name.v4.sin_port) = htons(port);
    return name;
}

/*
 * Returns 0 or an errno. A single [::] socket accepts IPv4 too; next to other sockets it must not.
 */
static int
open_listener(const union socket_name *name, socklen_t size, bool is_alone, int *out)
{
    int on = 1;
    *out = inherited_take(&name->any, size);
    if (*out >= 0)
        return 0;
    int fd = socket(name->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (name->any.sa_family == AF_INET6 && !is_alone)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, &name->any, size) != 0 || listen(fd, SOCKET_BACKLOG) != 0) {
        int failed = errno;
        close(fd);
        return failed;
    }
    *out = fd;
    return 0;
}

/* The fact and the remedy where the reason is common. */
static struct error *
advise(struct error *error, uint16_t port, int failed)
{
    char owner[160];
    if (failed == EADDRINUSE && port_owner_print(port, owner, sizeof owner)[0])
        return error_advise(error, "%s listens on the port: stop it, or give another port", owner);
    if (failed == EACCES && port < FIRST_OPEN_PORT)
        return error_advise(error, "ports below %d need root: give another one", FIRST_OPEN_PORT);
    return error;
}

static struct error *
cannot_listen(const struct attempt *attempt, const struct address *address, int failed)
{
    char requested[ADDRESS_TEXT_SIZE], text[ADDRESS_TEXT_SIZE];
    address_print(attempt->requested, requested, sizeof requested);
    address_print(address, text, sizeof text);
    struct error *error = strcmp(requested, text) == 0
                              ? error_from_errno(failed, "listen on %s", text)
                              : error_from_errno(failed, "listen on %s (%s)", text, requested);
    return advise(error, address->port, failed);
}

/* With port 0, the later addresses reuse the port that the first one got. */
static struct error *
listen_at(struct attempt *attempt, const struct addrinfo *at)
{
    struct listeners *listeners = attempt->listeners;
    uint16_t port = listeners->count ? listeners->items[0].address.port : attempt->requested->port;
    union socket_name name = name_with_port(at, port);
    socklen_t size = at->ai_addrlen;
    bool is_alone = !attempt->found->ai_next;
    int fd = -1;
    int failed = open_listener(&name, size, is_alone, &fd);
    if (failed == EADDRNOTAVAIL || failed == EAFNOSUPPORT) {
        attempt->missing[attempt->missing_count++] = address_of(&name);
        return NULL;
    }
    if (failed) {
        struct address address = address_of(&name);
        return cannot_listen(attempt, &address, failed);
    }
    getsockname(fd, &name.any, &size);
    listeners->items[listeners->count++] = (struct listening_socket){fd, address_of(&name), false};
    return NULL;
}

/* /etc/hosts may list an address twice. */
static bool
is_repeated(const struct addrinfo *found, const struct addrinfo *at)
{
    for (; found != at; found = found->ai_next) {
        if (found->ai_addrlen == at->ai_addrlen &&
            memcmp(found->ai_addr, at->ai_addr, at->ai_addrlen) == 0)
            return true;
    }
    return false;
}

static struct error *
listen_at_all(struct attempt *attempt)
{
    attempt->listeners->count = attempt->missing_count = 0;
    struct error *error = NULL;
    for (const struct addrinfo *at = attempt->found; at && !error; at = at->ai_next) {
        if (is_repeated(attempt->found, at))
            continue;
        if (attempt->listeners->count + attempt->missing_count == SOCKET_MAX_LISTENERS)
            error = error_new(CODE_INVALID_ARGUMENT,
                              "listen on %s: the name has more than %d addresses; give the "
                              "addresses to serve instead of the name",
                              attempt->requested->host, SOCKET_MAX_LISTENERS);
        else
            error = listen_at(attempt, at);
    }
    if (!error && !attempt->listeners->count)
        error = cannot_listen(attempt, &attempt->missing[0], EADDRNOTAVAIL);
    if (error)
        socket_close_listeners(attempt->listeners);
    return error;
}

static void
log_missing(const struct attempt *attempt, const struct log *log)
{
    char requested[ADDRESS_TEXT_SIZE], text[ADDRESS_TEXT_SIZE];
    address_print(attempt->requested, requested, sizeof requested);
    for (size_t i = 0; i < attempt->missing_count; i++) {
        address_print(&attempt->missing[i], text, sizeof text);
        log_warn(log, "not listening on an address that this machine does not have",
                 LOG_TEXT("address", text), LOG_TEXT("of", requested));
    }
}

static struct error *
find_addresses(const struct address *address, struct addrinfo **out)
{
    char text[ADDRESS_TEXT_SIZE];
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int failed = getaddrinfo(address->host[0] ? address->host : NULL, "0", &hints, out);
    if (!failed)
        return NULL;
    address_print(address, text, sizeof text);
    return error_new(CODE_INVALID_ARGUMENT, "listen on %s: %s", text, gai_strerror(failed));
}

struct error *
socket_listen_tcp(const struct address *address, const struct log *log, struct listeners *out)
{
    struct addrinfo *found;
    struct error *error = find_addresses(address, &found);
    if (error)
        return error;
    struct attempt attempt = {.requested = address, .found = found, .listeners = out};
    error = listen_at_all(&attempt);
    for (int i = 1;
         i < MAX_PORT_ATTEMPTS && error && error->code == CODE_UNAVAILABLE && !address->port; i++) {
        error_free(error);
        error = listen_at_all(&attempt);
    }
    freeaddrinfo(found);
    if (!error)
        log_missing(&attempt, log);
    return error;
}

void
socket_close_listeners(struct listeners *listeners)
{
    while (listeners->count)
        close(listeners->items[--listeners->count].fd);
}
