/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for addresses: the kernel's form of a name, and listening on TCP. */
#ifndef RPC_HTTP2_SOCKET_H
#define RPC_HTTP2_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/log.h"
#include "rpc/http2/address.h"

#define SOCKET_BACKLOG 511

/* Gives the size to hand to bind or connect. An abstract name begins with a NUL byte and has no other end than its size. */
socklen_t socket_name_of_unix(const struct address *address, struct sockaddr_un *out);

#define SOCKET_MAX_LISTENERS 16

struct listening_socket {
    int fd;                 /* non-blocking */
    struct address address; /* as a number, with the port that it really has */
};

struct listeners {
    struct listening_socket items[SOCKET_MAX_LISTENERS];
    size_t count;
};

/*
 * Listens on every address that the name stands for, without a host on all of IPv4 and IPv6; all with one port, which is chosen for port 0. An address
 * that this machine does not have is logged and left out, unless there is no other. Any other failure (UNAVAILABLE: in use) leaves nothing open.
 */
MUST_CHECK struct error *socket_listen_tcp(const struct address *address, const struct log *log,
                                           struct listeners *out);

void socket_close_listeners(struct listeners *listeners);

#endif
