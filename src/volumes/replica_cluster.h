/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What replicas need of the cluster. The cluster provides it to the engine (engine_join). Functions
 * may block and are safe from any thread. UNAVAILABLE: the node, or the registry, cannot be
 * reached.
 */
#ifndef VOLUMES_REPLICA_CLUSTER_H
#define VOLUMES_REPLICA_CLUSTER_H

#include "volumes/engine.h"
#include "volumes/replica_choice.h"

enum replica_state { REPLICA_NONE, REPLICA_RECEIVING, REPLICA_HELD };

/* What the node that took a snapshot says of it. */
enum replica_fate { REPLICA_UNKNOWN, REPLICA_THERE, REPLICA_DELETED };

enum replica_presence {
    REPLICA_NODE_READY,
    REPLICA_NODE_LOST,      /* for a short time */
    REPLICA_NODE_LOST_LONG, /* for longer than REPLICA_LOST_MS */
    REPLICA_NODE_FORGOTTEN, /* it is not a member */
};

#define REPLICA_LOST_MS (INT64_C(10) * 60 * 1000)

/* For the metrics. */
struct replica_figures {
    uint64_t wanted;  /* copies on other nodes that parameters of this node's snapshots ask for */
    uint64_t missing; /* of those */
    uint64_t held;    /* copies of other nodes' snapshots on this node */
};

struct replica_cluster {
    /* ---- the registry ---- */

    /* This node has a copy, or has it no more. */
    struct error *(*announce)(void *context, const char *handle, bool is_held);
    /* The nodes that have announced a copy. In the arena. */
    struct error *(*holders)(void *context, const char *handle, struct arena *arena,
                             const char *const **ids, size_t *count);
    /*
     * The registry remembers for some weeks that a snapshot was deleted, for nodes that have it or
     * a copy and could not be told.
     */
    struct error *(*remember)(void *context, const char *handle);
    struct error *(*is_deleted)(void *context, const char *handle, bool *out);
    /* Calls `take` for all; an error of it ends the walk. Removes those that are old. */
    struct error *(*walk_deleted)(void *context,
                                  struct error *(*take)(void *taker, const char *handle),
                                  void *taker);
    /* Changes when the registry has lost its rows. "" at first. */
    struct error *(*incarnation)(void *context, struct arena *arena, const char **out);

    /* ---- the members ---- */

    enum replica_presence (*presence)(void *context, const char *node_id);
    /* Nodes that can take a copy; not this one. In the arena. */
    struct error *(*candidates)(void *context, struct arena *arena, struct replica_candidate **out,
                                size_t *count);

    /* ---- calls to other nodes: see proto/replica.proto ---- */

    struct error *(*receive)(void *context, const char *node_id, const char *handle);
    /* `*out` is NULL if the state is REPLICA_NONE. */
    struct error *(*enroll)(void *context, const char *node_id, const char *handle,
                            enum replica_state state, struct arena *arena, snapshot_record **out);
    struct error *(*check)(void *context, const char *node_id, const char *const *handles,
                           size_t count, enum replica_fate *fates);
    struct error *(*describe)(void *context, const char *node_id, const char *handle,
                              struct arena *arena, snapshot_record **out);
    struct error *(*drop)(void *context, const char *node_id, const char *handle);
    struct error *(*ask)(void *context, const char *node_id, const char *const *handles,
                         size_t count, enum replica_state *states);

    /* ---- metrics ---- */

    void (*tell)(void *context, const struct replica_figures *figures);
    void (*count_received)(void *context, uint64_t bytes);
    void *context;
};

#endif
