/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine does by itself, on a thread of its own:
 *
 * - Once after the start, it removes data that no row refers to, and devices that nothing uses.
 *   Only what is older than the engine: what the engine is making has no row yet.
 * - Every other second, the back end does what it has to do by itself (backend_tend).
 * - Now and then, it makes durable what was made lately, and the store records up to when. After a
 *   power failure only volumes younger than that can be missing. They were empty, and are made
 *   again. Any other data that is missing was lost, and is not made again.
 */
#ifndef VOLUMES_UPKEEP_H
#define VOLUMES_UPKEEP_H

#include "volumes/engine.h"

struct upkeep;

void upkeep_start(struct engine *engine, struct upkeep **out);

/* The I/O limits of published volumes are applied again within two seconds (volume_use.h), once. */
void upkeep_renew_limits(struct engine *engine);

/* Waits for the thread, after one last time. NULL is fine. */
void upkeep_stop(struct upkeep *upkeep);

#endif
