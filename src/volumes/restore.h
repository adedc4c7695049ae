/* SPDX-License-Identifier: Apache-2.0 */
/* Making recent changes durable, and restoring what a power failure has undone. */
#ifndef VOLUMES_RESTORE_H
#define VOLUMES_RESTORE_H

#include "volumes/engine.h"

/*
 * Called before anything else. Recreates the empty volumes that a power failure has undone, and
 * forgets volumes that were in memory.
 */
MUST_CHECK struct error *restore_volumes(struct engine *engine);

/*
 * Makes durable what was made since the last time, and records that everything up to `time_ms` is.
 * An error is logged; the next call tries again.
 */
void restore_settle(struct engine *engine, uint64_t time_ms);

#endif
