/* SPDX-License-Identifier: Apache-2.0 */
/* Takes packs out of the index. Only prune and rebuild may do it, one at a time. */
#ifndef REPOSITORY_INDEX_DROP_H
#define REPOSITORY_INDEX_DROP_H

#include "repository/writers.h"

struct index_drop {
    struct repository *repository;
    struct writers_own *own; /* its object is refreshed and checked */
    struct id_set packs;
    bool leaves_marks; /* the index says that these packs are lost: their size is 0 */
    /* while it runs */
    struct buffer index; /* for a new index object */
    uint32_t entries;
};

/*
 * The new index objects are there before the old ones go. DATA_LOSS: an index object is damaged.
 * ABORTED: others take us for dead.
 */
MUST_CHECK struct error *index_drop_run(struct index_drop *drop);
void index_drop_clear(struct index_drop *drop);

#endif
