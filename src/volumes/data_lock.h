/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks on the data of a volume or snapshot, by handle. A copy takes the lock of its source shared,
 * so any number of copies can run. Deleting the data or changing its size takes the lock exclusive.
 * The lock is taken before the row is read and kept until the data has been used.
 */
#ifndef VOLUMES_DATA_LOCK_H
#define VOLUMES_DATA_LOCK_H

#include "volumes/rows.h"

#define DATA_LOCK_WAIT_MS 10000 /* how long a change waits for copies of its volume */

/* ABORTED while somebody has the lock exclusive. */
MUST_CHECK struct error *data_lock_shared(struct engine *engine, const struct row_kind *kind,
                                          const char *handle, struct name_lock **out);

/* FAILED_PRECONDITION while a copy of it is being made. */
MUST_CHECK struct error *data_lock_exclusive(struct engine *engine, const struct row_kind *kind,
                                             const char *handle, struct name_lock **out);

/* Exclusive too, but waits up to `wait_ms` for copies to end; then ABORTED. */
MUST_CHECK struct error *data_lock_wait(struct engine *engine, const struct row_kind *kind,
                                        const char *handle, unsigned wait_ms,
                                        struct name_lock **out);

#endif
