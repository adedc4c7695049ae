/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine does by itself, on a thread of its own:
 *
 * - once after the start: data that no row refers to goes, and devices that nothing uses. Only what is older than the engine: what it is
 *   making itself has no row yet.
 * - every other second: the back end does what it has to do by itself (backend_tend).
 * - now and then: what was made lately is made durable, and the store remembers up to when that was done. After a power failure only volumes
 *   younger than that can be missing, and they were empty: they are made again. Everything else that is missing was lost, and is not.
 */
#ifndef VOLUMES_UPKEEP_H
#define VOLUMES_UPKEEP_H

#include "volumes/engine.h"

struct upkeep;

/* Before anything else is done: makes the volumes again that a power failure has undone. */
MUST_CHECK struct error *upkeep_restore(struct engine *engine);

void upkeep_start(struct engine *engine, struct upkeep **out);

/* From now on the I/O limits of publications are applied every other second, as long as there are any: io_limits.h. */
void upkeep_renew_limits(struct engine *engine);

/* Waits for the thread, after one last time. NULL is fine. */
void upkeep_stop(struct upkeep *upkeep);

#endif
