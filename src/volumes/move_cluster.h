/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a move needs of the cluster: who owns a volume, and calls to other nodes. The cluster
 * provides it to the engine (engine_join). Functions may block and are safe from any thread.
 * UNAVAILABLE: the node cannot be reached.
 */
#ifndef VOLUMES_MOVE_CLUSTER_H
#define VOLUMES_MOVE_CLUSTER_H

#include "volumes/engine.h"
#include "volumes/ownership.h"

/* What the source says before a move. */
struct move_offer {
    volume_record *record;
    bool is_in_use;
    bool has_differences; /* a copy can be made before the move, and completed by it */
    uint64_t used_bytes;  /* 0: unknown */
};

/* What a node has of a volume. */
struct move_answer {
    bool has_row; /* one that counts: not LEFT */
    uint64_t epoch;
    char home[HANDLE_HOME_SIZE]; /* of a volume whose handle has none */
    bool is_lost;                /* it is the node's, and was lost with the node's store */
};

enum move_end { MOVE_SUCCEEDED, MOVE_FAILED, MOVE_CANCELLED, MOVE_ENDS };

/* A move to this node that has ended. */
struct move_measure {
    enum move_end end;
    uint64_t duration_ms;    /* in this process */
    uint64_t unavailable_ms; /* of one that has succeeded */
};

/* Whether the other nodes see this one. */
struct move_presence {
    bool is_away;   /* its registration is so old that they may take it for lost, or it has none */
    bool is_trying; /* it is registering now */
    uint64_t returns;         /* how often it has registered when it was away */
    uint64_t since_return_ms; /* UINT64_MAX: it never did */
};

struct move_cluster {
    const struct ownership *owners;
    /*
     * Announces the node's rows, if the registry is new (rules 8 and 9). Called from time to time,
     * by a thread that holds no lock of a volume.
     */
    struct error *(*renew)(void *context);

    /*
     * The node that is the home in a key, or in a handle. UNAVAILABLE: it is not registered.
     * FAILED_PRECONDITION: there is none in it.
     */
    struct error *(*find_home)(void *context, const char *key, struct arena *arena,
                               const char **node_id);
    /*
     * All rows of the registry: calls `take` for each volume that has left its home. An error of it
     * ends the walk.
     */
    struct error *(*walk)(void *context,
                          struct error *(*take)(void *taker, const char *key,
                                                const struct owner *owner),
                          void *taker);
    /* It has not renewed its registration in time, or has none. */
    bool (*is_lost)(void *context, const char *node_id);
    struct move_presence (*presence)(void *context); /* does not block */

    /* Calls to other nodes: see proto/move.proto. `ask` also takes a handle without a home. */
    struct error *(*describe)(void *context, const char *node_id, const char *key,
                              struct arena *arena, struct move_offer *out);
    struct error *(*begin)(void *context, const char *node_id, const char *key, struct arena *arena,
                           volume_record **out);
    struct error *(*give_up)(void *context, const char *node_id, const char *key, uint64_t epoch);
    struct error *(*settle)(void *context, const char *node_id, const char *key);
    struct error *(*ask)(void *context, const char *node_id, const char *key, bool is_gone,
                         struct move_answer *out);
    /* For the metrics: a move to this node has ended. */
    void (*count)(void *context, const struct move_measure *measure);
    void *context;
};

#endif
