/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks on the data of a volume or snapshot, by handle. Copying from it takes the lock shared, so
 * any number of copies can run; deleting it and changing its size take the lock exclusive. A lock
 * is taken before the row is read, and kept until the data has been used.
 */
#ifndef VOLUMES_DATA_LOCK_H
#define VOLUMES_DATA_LOCK_H

#include "volumes/rows.h"

#define DATA_LOCK_WAIT_MS 10000 /* how long a change waits for copies from what it changes */

/* ABORTED while somebody has the lock exclusive. */
MUST_CHECK struct error *data_lock_shared(struct engine *engine, const struct row_kind *kind,
                                          const char *handle, struct name_lock **out);

/* FAILED_PRECONDITION while something is being copied from it. */
MUST_CHECK struct error *data_lock_exclusive(struct engine *engine, const struct row_kind *kind,
                                             const char *handle, struct name_lock **out);

/* Exclusive as well, but waits for copies to end, at most so long; then ABORTED. */
MUST_CHECK struct error *data_lock_wait(struct engine *engine, const struct row_kind *kind,
                                        const char *handle, unsigned wait_ms,
                                        struct name_lock **out);

#endif
