/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a pull (pull.h): how far it has come, and what it belongs to. */
#ifndef VOLUMES_PULL_POSITION_H
#define VOLUMES_PULL_POSITION_H

#include "stream/stream.h"
#include "volumes/engine.h"

struct pull_position {
    const char *snapshot;
    const char *base;
    const char *node_id; /* the node that sends it; "": the one in the handle */
    struct stream_position position;
};

/* Durable when it returns. */
MUST_CHECK struct error *pull_position_save(struct engine *engine, const char *row,
                                            const struct pull_position *position);

/*
 * In the arena. `*is_there` is false if there is no row. A row that cannot be read has an empty
 * snapshot, so it is that of another pull.
 */
MUST_CHECK struct error *pull_position_read(struct engine *engine, const char *row,
                                            struct arena *arena, struct pull_position *out,
                                            bool *is_there);

#endif
