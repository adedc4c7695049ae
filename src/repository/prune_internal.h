/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of prune:
 *
 *     prune.c          the order of things, and which packs become garbage
 *     prune_index.c    which chunks are in use, and where they are
 *     prune_rewrite.c  copies the chunks in use out of packs that have few of them
 *     prune_delete.c   deletes garbage
 */
#ifndef REPOSITORY_PRUNE_INTERNAL_H
#define REPOSITORY_PRUNE_INTERNAL_H

#include "repository/live.h"
#include "repository/writers.h"

struct prune {
    struct repository *repository;
    struct repository_prune *request;
    struct writers_own own;
    struct live live;
    struct id_set garbage;       /* packs of all garbage objects */
    struct locations *locations; /* chunks are in garbage only if they are nowhere else */
    size_t lost;                 /* packs that the index names and that are not there */
    struct cache_db *packs;      /* name of a pack: bytes of chunks in use (8), size (8) */
    struct id_set sparse;        /* packs to be rewritten */
    uint64_t done, total;        /* snapshots read, packs rewritten or deleted */
};

/* One more object is done. CANCELLED. */
MUST_CHECK struct error *prune_report(struct prune *prune);

/* Adds the chunks of snapshots that are new to `live`. */
MUST_CHECK struct error *prune_collect(struct prune *prune);

/* Reads the index anew, with the garbage of now. */
MUST_CHECK struct error *prune_read_index(struct prune *prune);

/* Calls `each` with every chunk in use and where it is. DATA_LOSS if it is nowhere, or lost. */
MUST_CHECK struct error *prune_walk(struct prune *prune,
                                    struct error *(*each)(struct prune *prune,
                                                          const struct location *location,
                                                          void *context),
                                    void *context);

MUST_CHECK struct error *prune_rewrite(struct prune *prune);
MUST_CHECK struct error *prune_delete(struct prune *prune);

#endif
