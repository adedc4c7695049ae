/* SPDX-License-Identifier: Apache-2.0 */
/* Listening on an address, and accepting connections. All but listeners_open is for the loop. */
#ifndef RPC_SERVER_LISTENER_H
#define RPC_SERVER_LISTENER_H

#include <uv.h>

#include "base/error.h"
#include "rpc/http2/address.h"
#include "rpc/loop/loop.h"
#include "rpc/tls/tls.h"

struct listener {
    struct loop *loop;
    struct address address;
    struct tls_context *tls; /* for connections that are accepted here; NULL: plaintext */
    void (*accepted)(struct listener *listener, int fd); /* takes the descriptor */
    void *owner;
    uv_poll_t poll;
    int fd;
    unsigned holders;   /* the owner and the loop */
    struct timer retry; /* out of descriptors: tries again soon */
    struct listener *next;
};

/*
 * Gives a list, with one listener for each address that the name stands for; `like` has loop, tls,
 * accepted and owner of each. `socket_mode` is that of a unix socket.
 */
MUST_CHECK struct error *listeners_open(const struct address *address, unsigned socket_mode,
                                        const struct listener *like, struct listener **out);

void listener_init(struct listener *listener);
void listener_start(struct listener *listener);
void listener_stop(struct listener *listener);
/* After listener_stop. */
void listener_free(struct listener *listener);

#endif
