/* SPDX-License-Identifier: Apache-2.0 */
/* Listens on an address and accepts connections. Loop thread only, except for listeners_open. */
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
    struct tls_context *tls; /* for accepted connections; NULL: plaintext */
    void (*accepted)(struct listener *listener, int fd); /* takes over the descriptor */
    void *owner;
    uv_poll_t poll;
    int fd;
    bool is_inherited;   /* the service manager keeps the socket, and its file */
    unsigned references; /* the owner and the loop */
    struct timer retry;  /* after running out of descriptors */
    size_t awaited;      /* connections whose peers have not said anything yet: see server.c */
    struct listener *next;
};

/*
 * Returns a list with one listener for each address that the host resolves to. `like` has the loop,
 * tls, accepted and owner of each. `socket_mode` applies to a unix socket.
 */
MUST_CHECK struct error *listeners_open(const struct address *address, unsigned socket_mode,
                                        const struct listener *like, struct listener **out);

void listener_init(struct listener *listener);
void listener_start(struct listener *listener);
void listener_stop(struct listener *listener);
/* Call after listener_stop. */
void listener_free(struct listener *listener);

#endif
