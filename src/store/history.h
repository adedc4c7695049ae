/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest changes of a store, in memory, for its watchers. Every store has one and publishes in
 * it what has become durable; watching is the same for all of them (watch.c).
 *
 * It is bounded by number and by bytes: a watch that falls further behind has to list again.
 */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include <pthread.h>

#include "store/store.h"

/*
 * 25,000 writes per second are possible: a watch may be 150 ms late on a busy machine.
 */
#define HISTORY_CHANGES 4096u
#define HISTORY_BYTES                                                                              \
    (512u * 1024) /* of keys and values; the newest change stays whatever its size */

struct change;

struct history {
    pthread_mutex_t lock;
    pthread_cond_t grew;
    struct change *changes[HISTORY_CHANGES]; /* number n is at n % HISTORY_CHANGES */
    uint64_t first, end; /* numbers of the oldest that is kept, and of the one after the newest */
    size_t bytes;
    uint64_t forgotten; /* changes up to this revision are incomplete */
    bool is_cut_off;    /* there may be changes that have not arrived */
};

/* `revision`: of the last write before the history begins. */
void history_init(struct history *history, uint64_t revision);
void history_clear(struct history *history);

/*
 * The changes of a write, collected before they are durable, so that nothing can fail or take long
 * afterwards.
 */
struct change_list {
    struct change *first;
    struct change *last;
};

void change_list_add(struct change_list *list, const struct store_change *added, uint64_t revision);
void change_list_append(struct change_list *list, struct change_list *more);
void change_list_clear(struct change_list *list);

/* Takes the changes out of the list and wakes the watches. */
void history_publish(struct history *history, struct change_list *list);

/*
 * Forgets the changes up to the revision, and an unknown number that never arrived: every open
 * watch has to list again.
 */
void history_forget(struct history *history, uint64_t revision);

/* While changes cannot arrive, a watch that waits gets UNAVAILABLE. */
void history_set_cut_off(struct history *history, bool is_cut_off);

MUST_CHECK struct error *history_watch(struct history *history, const char *prefix, uint64_t since,
                                       struct store_watch **out);

#endif
