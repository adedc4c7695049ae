/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time up to which everything is durable, on the clock of handles. After a power failure, only
 * an empty volume that is younger can be missing; it is recreated. Older data that is missing is
 * lost.
 *
 *     engine/settled    the time, in milliseconds
 *     engine/boot       the kernel's boot id, once everything that the last power failure undid has
 *                       been repaired
 */
#ifndef VOLUMES_SETTLED_H
#define VOLUMES_SETTLED_H

#include "volumes/engine.h"

struct settled {
    uint64_t time_ms;  /* 0: not in the store */
    bool is_same_boot; /* the kernel has not been restarted: nothing was undone */
};

MUST_CHECK struct error *settled_read(struct engine *engine, struct settled *out);

/*
 * Makes everything durable and records that it is up to this time. Records the boot id too, unless
 * engine->is_first_of_boot.
 */
MUST_CHECK struct error *settled_write(struct engine *engine, uint64_t time_ms);

/*
 * The newest time in any handle and in the store; 0 if the system clock is later than all, as it
 * should be. A machine with an empty clock battery may start years in the past.
 */
MUST_CHECK struct error *settled_find_newest(struct engine *engine, uint64_t *time_ms);

#endif
