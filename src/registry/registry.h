/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: which controller answers where, durably, and the way to them. Serves
 * oim.v0.Registry and skycap.v1.Registry, and passes calls of all other methods on to the
 * controller that their header "controllerid" names.
 *
 * Rights are names in certificates: see rights.h. All that is asked here for each call is in
 * memory; the store is written to when entries change, and watched for what other registries on the
 * same store change.
 */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include "base/buffer.h"
#include "base/log.h"
#include "rpc/server/server.h"
#include "store/store.h"

struct registry;

struct registry_options {
    struct store *store;        /* of its own; must outlive the registry */
    const char *const *readers; /* who may read, see rights.h; NULL at the end */
    bool is_open;               /* --insecure: there are no names, everybody may do everything */
    const char
        *own_controller; /* a controller in this process: calls to it are served here; NULL: none */
    struct tls_context *tls; /* to controllers; NULL: plaintext */
    struct runtime *runtime;
    const struct log *log;
};

/*
 * Reads all entries. If the store cannot be reached yet they are read when it can; until then the
 * registry does not know whom to pass calls on to.
 */
MUST_CHECK struct error *registry_open(const struct registry_options *options,
                                       struct registry **out);

/*
 * NULL once all entries have been read; until then UNAVAILABLE, and why. Any thread; does not wait.
 */
MUST_CHECK struct error *registry_check(const struct registry *registry);

/* Its services, and the fallback that passes calls on. Before the server begins. */
void registry_add(struct registry *registry, struct server *server);

/*
 * Loop thread: whether the call is to be passed on although the server may have its method itself:
 * it carries "controllerid", names another controller than our own, and is not of the registry's
 * services.
 */
bool registry_wants_to_pass(const struct registry *registry, const struct call *call);

/* Watches end; calls that are passed on go on. Before server_drain. */
void registry_stop(struct registry *registry);

/*
 * After the server was freed and the store stopped, before the runtime and the store are closed.
 * NULL is fine.
 */
void registry_close(struct registry *registry);

void registry_print_metrics(struct registry *registry, struct buffer *out);

#endif
