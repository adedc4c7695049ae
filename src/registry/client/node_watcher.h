/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the nodes that are registered with a registry: skycap.v1.Registry/Watch, on a thread of
 * its own. When the registry is lost, the watcher retries after one second, then after longer
 * pauses, and tells all nodes again when it is back. In between it tells nothing: no node is taken
 * for expired or removed because the registry cannot be asked.
 *
 * A registry accepts 128 watches at a time. One that is refused lists all nodes instead, every ten
 * seconds, and tries to watch each time.
 */
#ifndef REGISTRY_CLIENT_NODE_WATCHER_H
#define REGISTRY_CLIENT_NODE_WATCHER_H

#include "base/log.h"
#include "base/text_map.h"
#include "rpc/client/channel.h"

struct node_watcher;

struct watched_node {
    const char *id;
    const char *address;
    struct text_map attributes;
    bool is_expired;       /* it has not renewed its registration in time */
    int64_t registered_ms; /* Unix time when it was registered, or last renewed if it has expired */
};

struct node_watcher_options {
    const char *registry;    /* its address */
    struct tls_context *tls; /* NULL: plaintext; otherwise the server must be component.registry */
    struct runtime *runtime;
    const struct log *log;

    /*
     * Called on the watcher's thread, one at a time. The arguments live until they return.
     *
     * `changed`: the node is new, has changed, has expired or is back. A node may be told again as
     * it was. `removed`: its entry is gone. `completed`: all nodes that the registry has have been
     * told; after the first and each further connection.
     */
    void (*changed)(void *context, const struct watched_node *node);
    void (*removed)(void *context, const char *id);
    void (*completed)(void *context);
    void *context;
};

/* The texts must outlive it. Calls nobody yet. */
MUST_CHECK struct error *node_watcher_open(const struct node_watcher_options *options,
                                           struct node_watcher **out);

void node_watcher_begin(struct node_watcher *watcher);

/* Ends the watch soon. Does not block; may be called repeatedly. */
void node_watcher_stop(struct node_watcher *watcher);

/* Stops, and waits for the thread. Before the runtime is closed; NULL is fine. */
void node_watcher_close(struct node_watcher *watcher);

#endif
