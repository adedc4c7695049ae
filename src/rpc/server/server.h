/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC server: services, and the addresses that it listens on.
 *
 *     struct server *server = server_new(runtime, &(struct server_options){0});
 *     server_add_service(server, &csi_v1_identity_service, &handlers, context);
 *     TRY(server_listen(server, "unix:///run/skycap/csi.sock", NULL));
 *     ...
 *     server_free(server);
 *
 * Call from any thread but the loop's.
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

/* 0 selects the default given in the comment. */
struct server_options {
    size_t max_message_bytes;  /* 4 MiB; larger messages: RESOURCE_EXHAUSTED */
    uint32_t max_header_bytes; /* 16 KiB */
    uint32_t max_streams;      /* 256 per connection */
    uint32_t max_connections;  /* 1024, or less: see server.c; further ones get GOAWAY */
    uint32_t max_awaited; /* 512 for each listener, or less; the oldest is closed for a new one */
    uint32_t preface_timeout_ms; /* 10 s from the connection to the HTTP/2 preface */
    uint32_t stall_timeout_ms; /* 60 s without progress on a connection whose peer does not read */
    uint32_t request_timeout_ms; /* 30 s until a request with a single message is complete */
    /* 5 min without progress on a stream whose client grants no window */
    uint32_t stream_stall_timeout_ms;
    bool accept_later; /* listen, but accept only after server_begin */
};

struct listen_options {
    struct tls_context *tls; /* NULL: plaintext; must outlive the server */
    unsigned socket_mode;    /* of a unix socket; 0: 0600 */
};

struct server *server_new(struct runtime *runtime, const struct server_options *options);

/*
 * `handlers` is the service's generated struct. Call before the first server_listen. Handlers and
 * context must outlive the server.
 */
void server_add_service(struct server *server, const struct service *service, const void *handlers,
                        void *context);

/*
 * Gives calls of this method a memory reserve (admission.h), because they check whether the process
 * is alive. Call after adding its service.
 */
void server_reserve_for(struct server *server, const struct method *method);

/*
 * Runs for every method that no service has. It answers the call, or calls rpc_proxy and returns
 * NULL. Set before the first server_listen.
 */
struct fallback {
    struct error *(*run)(struct call *call);
    bool on_loop;
    void *context;
};
void server_set_fallback(struct server *server, const struct fallback *fallback);

/*
 * Checks every call on the loop as soon as its header is complete; must not block. An error answers
 * the call. `*to_fallback` sends it to the fallback even if a service has the method. Set before
 * the first server_listen, or before server_begin with `accept_later`.
 */
struct guard {
    struct error *(*check)(struct call *call, void *context, bool *to_fallback);
    void *context;
};
void server_set_guard(struct server *server, const struct guard *guard);

/*
 * Listens on the address; for a host name, on every address that it resolves to. Removes a stale
 * unix socket, but not one in use. FAILED_PRECONDITION or UNAVAILABLE if the address is in use.
 */
MUST_CHECK struct error *server_listen(struct server *server, const char *address,
                                       const struct listen_options *options);

/* Starts accepting connections with `accept_later`. Services may be added until then. */
void server_begin(struct server *server);

/* Returns the n-th address it listens on: numeric, with the actual port. NULL: there are fewer. */
const struct address *server_address(const struct server *server, size_t n);

/* Stops accepting and waits up to `timeout_ms` for running calls. False: some still run. */
bool server_stop(struct server *server, uint32_t timeout_ms);
/* Stops accepting, waits up to `grace_ms` for running calls, then cancels them. */
void server_drain(struct server *server, uint32_t grace_ms);

/* Closes all connections and frees the server. Blocks until running handlers return. */
void server_free(struct server *server);

/* The services that were added, NULL-terminated; for reflection. */
const struct service *const *server_services(const struct server *server);

#endif
