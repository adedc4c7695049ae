/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC server: services, and the addresses that it listens on.
 *
 *     struct server *server;
 *     TRY(server_new(runtime, &(struct server_options){0}, &server));
 *     server_add_service(server, &csi_v1_identity_service, &handlers, context);
 *     TRY(server_listen(server, "unix:///run/skycap/csi.sock", NULL));
 *     ...
 *     server_free(server);
 *
 * From any thread but the loop's.
 */
#ifndef RPC_SERVER_SERVER_H
#define RPC_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "message/service.h"
#include "rpc/http2/address.h"
#include "rpc/runtime/runtime.h"
#include "rpc/server/call.h"
#include "rpc/tls/tls.h"

struct server;

/* Zero means the default that stands beside it. */
struct server_options {
    size_t max_message_bytes;    /* 4 MiB: larger messages are refused with RESOURCE_EXHAUSTED */
    uint32_t max_header_bytes;   /* 16 KiB */
    uint32_t max_streams;        /* 256 per connection */
    uint32_t max_connections;    /* 1024; one more is told to go away */
    uint32_t preface_timeout_ms; /* 10 s from connecting to speaking HTTP/2 */
    uint32_t stall_timeout_ms;   /* 60 s during which a peer takes nothing of what is sent to it */
    uint32_t request_timeout_ms; /* 30 s for a request that is one message to come as a whole */
    uint32_t stream_stall_timeout_ms; /* 5 min, the same for one call: its client gives no window */
    bool
        waits; /* addresses are taken, but nobody is let in before server_begin: who comes, waits */
};

struct listen_options {
    struct tls_context *tls; /* NULL: plaintext. Must outlive the server. */
    unsigned socket_mode;    /* of a unix socket; 0: 0600 */
};

struct server *server_new(struct runtime *runtime, const struct server_options *options);

/* `handlers` is the service's generated struct. Before the first server_listen. Handlers and context must outlive the server. */
void server_add_service(struct server *server, const struct service *service, const void *handlers,
                        void *context);

/* Calls of this method notify whether the process lives, and have a reserve of memory (admission.h). Once its service has been added. */
void server_reserve_for(struct server *server, const struct method *method);

/* Runs for every method that no service has. It answers, or says rpc_proxy and returns NULL. Before the first server_listen. */
struct fallback {
    struct error *(*run)(struct call *call);
    bool on_loop;
    void *context;
};
void server_set_fallback(struct server *server, const struct fallback *fallback);

/*
 * Judges every call on the loop, as soon as its header fields are there; never waits. An error answers the call. `*to_fallback`: the fallback
 * gets it, though a service may have its method. Before the first server_listen, or of a server that waits.
 */
struct guard {
    struct error *(*judge)(struct call *call, void *context, bool *to_fallback);
    void *context;
};
void server_set_guard(struct server *server, const struct guard *guard);

/*
 * Opens the address and serves it; of a name, every address that it stands for. A stale unix socket is removed, one that somebody serves is not.
 * FAILED_PRECONDITION or UNAVAILABLE when it is in use.
 */
MUST_CHECK struct error *server_listen(struct server *server, const char *address,
                                       const struct listen_options *options);

/* Lets them in, of a server that waits. Until then services may be added. */
void server_begin(struct server *server);

/* Where it really listens: the n-th address, as a number, with the port that was chosen for port 0. NULL: there are not so many. */
const struct address *server_address(const struct server *server, size_t n);

/* Takes no new connections and calls, waits for those that run, at most so long; then cancels them. */
void server_drain(struct server *server, uint32_t grace_ms);

/* Ends what is left and frees the server. Handlers that still run are waited for. */
void server_free(struct server *server);

/* The services that were added, NULL at the end: for reflection. */
const struct service *const *server_services(const struct server *server);

#endif
