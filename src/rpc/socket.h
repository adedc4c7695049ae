/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets for addresses: the kernel's form of a name, and listening on TCP. */
#ifndef RPC_SOCKET_H
#define RPC_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "rpc/address.h"

#define SOCKET_BACKLOG 511

/* Gives the size to hand to bind or connect. An abstract name begins with a NUL byte and has no other end than its size. */
socklen_t socket_name_of_unix(const struct address *address, struct sockaddr_un *out);

/* A listening, non-blocking descriptor; port 0 in the address becomes the one that was chosen. */
MUST_CHECK struct error *socket_listen_tcp(struct address *address, int *fd);

#endif
