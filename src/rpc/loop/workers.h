/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread pool for handlers. Handlers may block, so the pool is elastic. It has one thread per
 * core for short work. If all of them are blocked and the queue does not move, it grows up to its
 * limit. Threads that stay idle end.
 */
#ifndef RPC_LOOP_WORKERS_H
#define RPC_LOOP_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

struct work {
    struct work *next;
    void (*run)(struct work *work);
    bool is_short; /* expected to be: the loop thread may run it itself */
};

struct workers;

/* At most `max_threads` threads and `max_queued` queued items. */
struct workers *workers_new(unsigned max_threads, size_t max_queued);

/* Waits for all submitted work, then for the threads. */
void workers_free(struct workers *workers);

/* How many more items the queue has room for. Only workers_submit makes it smaller. */
size_t workers_room(const struct workers *workers);

/*
 * Queues a list of `count` items, for which there must be room, with one wake-up. Returns true if
 * some of them will wait for busy threads (a hint). Only one thread may submit.
 */
bool workers_submit(struct workers *workers, struct work *first, size_t count);

/*
 * Starts threads if the queue has not moved since the last call. Returns true while work is queued;
 * call it about every millisecond until it returns false. Only one thread may call it.
 */
bool workers_relieve(struct workers *workers);

#endif
