/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for addresses: sockaddr of a unix socket, listening on TCP. */
#ifndef RPC_HTTP2_SOCKET_H
#define RPC_HTTP2_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/log.h"
#include "rpc/http2/address.h"

#define SOCKET_BACKLOG 511

/*
 * Returns the size to pass to bind or connect. An abstract name begins with a NUL byte and ends
 * where its size says.
 */
socklen_t socket_name_of_unix(const struct address *address, struct sockaddr_un *out);

#define SOCKET_MAX_LISTENERS 16

struct listening_socket {
    int fd;                 /* non-blocking */
    struct address address; /* numeric, with the actual port */
    bool is_inherited;      /* the service manager's: see inherited.h */
};

struct listeners {
    struct listening_socket items[SOCKET_MAX_LISTENERS];
    size_t count;
};

/*
 * Listens on every address that the host resolves to, or on all IPv4 and IPv6 addresses if there is
 * no host. All sockets share one port; port 0 selects a free one.
 *
 * An address that this machine does not have is logged and skipped, unless no other is left. Any
 * other failure (UNAVAILABLE: in use) closes all the sockets opened so far.
 */
MUST_CHECK struct error *socket_listen_tcp(const struct address *address, const struct log *log,
                                           struct listeners *out);

void socket_close_listeners(struct listeners *listeners);

#endif
