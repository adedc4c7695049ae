/* SPDX-License-Identifier: Apache-2.0 */
/* A unix address in the kernel's form. */
#ifndef RPC_SOCKADDR_H
#define RPC_SOCKADDR_H

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "rpc/address.h"

/* Gives the size to hand to bind or connect. An abstract name begins with a NUL byte and has no other end than its size. */
static inline socklen_t
sockaddr_of_unix(const struct address *address, struct sockaddr_un *out)
{
    size_t head = address->kind == ADDRESS_UNIX_ABSTRACT ? 1 : 0;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + head, address->path, address->path_size);
    return (socklen_t)(sizeof(sa_family_t) + head + address->path_size + (head ? 0 : 1));
}

#endif
