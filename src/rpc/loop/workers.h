/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that handlers run on. Handlers may block, so the pool is elastic: as many threads as the machine has cores
 * serve short work without more; when the queue stands still because all of them are blocked, it grows, up to its limit, and shrinks again
 * when threads have had nothing to do for a while.
 */
#ifndef RPC_LOOP_WORKERS_H
#define RPC_LOOP_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

struct work {
    struct work *next;
    void (*run)(struct work *work);
    bool is_short; /* as far as one knows: the loop's own thread may run it */
};

struct workers;

/* At most `max_threads` threads and `max_queued` waiting pieces of work. */
struct workers *workers_new(unsigned max_threads, size_t max_queued);

/* Waits for all that was submitted, then for the threads. */
void workers_free(struct workers *workers);

/* How many more pieces of work are taken. It grows by itself, and shrinks only by workers_submit. */
size_t workers_room(const struct workers *workers);

/*
 * Takes a list of `count` pieces, for all of which there is room, together: a pile costs one wake-up. True: some of it has to wait
 * for threads that are busy (a hint). One thread submits.
 */
bool workers_submit(struct workers *workers, struct work *first, size_t count);

/*
 * Call about every millisecond while it says true, which is while work is waiting: starts threads if the queue has not
 * moved since the last time. One caller.
 */
bool workers_relieve(struct workers *workers);

#endif
