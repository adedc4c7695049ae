/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for addresses: see socket.h. */
#include "rpc/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

socklen_t
socket_name_of_unix(const struct address *address, struct sockaddr_un *out)
{
    size_t head = address->kind == ADDRESS_UNIX_ABSTRACT ? 1 : 0;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + head, address->path, address->path_size);
    return (socklen_t)(sizeof(sa_family_t) + head + address->path_size + (head ? 0 : 1));
}

static struct error *
listen_at(const struct addrinfo *at, const char *text, int *out)
{
    int on = 1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_from_errno(errno, "make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, SOCKET_BACKLOG) != 0) {
        struct error *error = error_from_errno(errno, "listen on %s", text);
        close(fd);
        return error;
    }
    *out = fd;
    return NULL;
}

static uint16_t
bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name = {0};
    socklen_t size = sizeof name;
    getsockname(fd, &name.any, &size);
    return ntohs(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
}

struct error *
socket_listen_tcp(struct address *address, int *fd)
{
    char text[300];
    char port[8];
    address_print(address, text, sizeof text);
    snprintf(port, sizeof port, "%u", address->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(address->host[0] ? address->host : NULL, port, &hints, &found);
    if (failed)
        return error_new(CODE_INVALID_ARGUMENT, "listen on %s: %s", text, gai_strerror(failed));
    struct error *error = listen_at(found, text, fd);
    freeaddrinfo(found);
    if (!error)
        address->port = bound_port(*fd);
    return error;
}
