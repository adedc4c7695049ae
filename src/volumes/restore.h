/* SPDX-License-Identifier: Apache-2.0 */
/* Making durable what was made lately, and restoring what a power failure has undone. */
#ifndef VOLUMES_RESTORE_H
#define VOLUMES_RESTORE_H

#include "volumes/engine.h"

/*
 * Before anything else is done: makes the empty volumes again that a power failure has undone, and
 * forgets what was in memory.
 */
MUST_CHECK struct error *restore_volumes(struct engine *engine);

/*
 * Makes durable what was made since the last time, and records that it is so up to this time. Logs
 * an error, and tries again the next time.
 */
void restore_settle(struct engine *engine, uint64_t time_ms);

#endif
