/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to when everything is durable, by the time in handles. After a power failure only an empty
 * volume that is younger can be missing, and is made again; anything older that is missing was
 * lost.
 *
 *     engine/settled    the time, in milliseconds
 *     engine/boot       the id of the kernel's run, once everything that the last power failure
 *                       undid has been put right
 */
#ifndef VOLUMES_SETTLED_H
#define VOLUMES_SETTLED_H

#include "volumes/engine.h"

struct settled {
    uint64_t time_ms;  /* 0: the store does not tell */
    bool is_same_boot; /* that kernel still runs: nothing was undone since */
};

MUST_CHECK struct error *settled_read(struct engine *engine, struct settled *out);

/*
 * Makes everything durable, and writes down that it is so up to this time; and the kernel's run,
 * unless engine->is_first_of_boot.
 */
MUST_CHECK struct error *settled_write(struct engine *engine, uint64_t time_ms);

/*
 * The newest time that a handle, or the time above, tells; 0 if the clock is ahead of all, which is
 * what it should be. A machine whose battery is empty may begin years before its volumes were made.
 */
MUST_CHECK struct error *settled_find_newest(struct engine *engine, uint64_t *time_ms);

#endif
