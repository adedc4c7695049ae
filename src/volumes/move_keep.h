/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that are SUPERSEDED (rule 13) become snapshots, when nobody uses them any more. Where
 * that is a full copy, it may fail: then it is not made again at once.
 */
#ifndef VOLUMES_MOVE_KEEP_H
#define VOLUMES_MOVE_KEEP_H

#include "volumes/rows.h"

/* Zeroed: nothing has been tried. For one thread. */
struct move_keeping {
    struct kept_volume *first;
};

/*
 * To be called again until the volume has LEFT: does not wait for the copy. An error is returned
 * once, and then nothing is done for a while. FAILED_PRECONDITION: it is in use.
 */
MUST_CHECK struct error *move_keep(struct move_keeping *keeping, struct engine *engine,
                                   const char *handle);

void move_keep_clear(struct move_keeping *keeping);

#endif
