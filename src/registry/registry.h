/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: stores the addresses of controllers and nodes, and forwards calls to controllers.
 * Serves oim.v0.Registry, skycap.v1.Registry and skycap.v1.ClusterStore, and forwards calls of all
 * other methods to the controller that the header "controllerid" names.
 *
 * Permissions depend on the names in certificates: see rights.h. Forwarding uses only what is in
 * memory. The store is written when entries change, and watched for changes by other registries.
 */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include "base/buffer.h"
#include "base/log.h"
#include "rpc/server/server.h"
#include "store/store.h"

struct registry;

struct registry_options {
    struct store *store;        /* must outlive the registry */
    const char *const *readers; /* who may read: see rights.h; ends with NULL */
    bool is_open;               /* --insecure: every caller may do everything */
    const char *own_controller; /* the id of the controller in this process; NULL: none */
    struct tls_context *tls;    /* to controllers; NULL: plaintext */
    struct runtime *runtime;
    const struct log *log;
};

/*
 * Reads all entries. If the store is unreachable, they are read later; until then no call can be
 * forwarded.
 */
MUST_CHECK struct error *registry_open(const struct registry_options *options,
                                       struct registry **out);

/* UNAVAILABLE: the entries have not been read yet. Any thread; does not block. */
MUST_CHECK struct error *registry_check(const struct registry *registry);

/* Adds the services, and the fallback that forwards calls. Before the server begins. */
void registry_add(struct registry *registry, struct server *server);

/*
 * Loop thread: whether to forward the call even if the server has the method. True if it has the
 * header "controllerid", names another controller than `own_controller`, and is not for the
 * registry's services.
 */
bool registry_should_forward(const struct registry *registry, const struct call *call);

/* Ends watches; forwarded calls go on. Before server_drain. */
void registry_stop(struct registry *registry);

/*
 * After the server has been freed and the store stopped; before the runtime and the store are
 * closed. NULL is fine.
 */
void registry_close(struct registry *registry);

void registry_print_metrics(struct registry *registry, struct buffer *out);

#endif
