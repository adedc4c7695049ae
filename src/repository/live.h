/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks that snapshots refer to, in a temporary file. One thread at a time. */
#ifndef REPOSITORY_LIVE_H
#define REPOSITORY_LIVE_H

#include "repository/id_set.h"
#include "repository/repository_internal.h"
#include "repository/writers.h"
#include "store/cache_db.h"

struct live {
    struct cache_db *ids; /* the key is the id */
    /*
     * Parts of manifests that are known with all that they list. An id alone does not tell: a file
     * may have the contents of a part.
     */
    struct cache_db *parts;
    struct id_set seen; /* snapshots whose chunks are in it */
};

MUST_CHECK struct error *live_open(struct repository *repository, struct live *out);
void live_clear(struct live *live);

struct live_work {
    const struct repository_references *references;
    const struct repository_progress *progress;
    struct writers_own *own;              /* its object is refreshed */
    struct error *(*seen)(void *context); /* called for each snapshot that was read */
    void *context;
};

/*
 * Adds the chunks of all snapshots that were not seen. DATA_LOSS names a snapshot that cannot be
 * read.
 */
MUST_CHECK struct error *live_collect(struct repository *repository, const struct live_work *work,
                                      struct live *live);
MUST_CHECK struct error *live_has(struct live *live, const struct repository_id *id, bool *found);

#endif
