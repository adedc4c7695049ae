/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's background thread:
 *
 *   - Once after the start, it removes data that no row refers to, and unused devices. It takes
 *     only what is older than the engine: what the engine is creating has no row yet.
 *   - Every other second, it runs the back end's background work (backend_tend).
 *   - From time to time, it makes recent changes durable and records the time in the store. After a
 *     power failure only volumes younger than that can be missing. They were empty, and are
 *     recreated. Any other data that is missing is lost, and is not recreated.
 */
#ifndef VOLUMES_UPKEEP_H
#define VOLUMES_UPKEEP_H

#include "volumes/engine.h"

struct upkeep;

void upkeep_start(struct engine *engine, struct upkeep **out);

/* Applies the I/O limits of published volumes again, once, within two seconds (volume_use.h). */
void upkeep_renew_limits(struct engine *engine);

/* Runs the background work once more and waits for the thread to end. NULL is fine. */
void upkeep_stop(struct upkeep *upkeep);

#endif
