/* SPDX-License-Identifier: Apache-2.0 */
/* Notification of changes: see fact_changes.h. */
#include "drivers/fact_changes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

struct fact_changes {
    atomic_uint references;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t count;
    bool is_stopped;
};

struct fact_changes *
fact_changes_new(void)
{
    struct fact_changes *changes = memory_zeroed(sizeof *changes);
    atomic_init(&changes->references, 1);
    pthread_mutex_init(&changes->lock, NULL);
    pthread_cond_init(&changes->changed, NULL);
    return changes;
}

struct fact_changes *
fact_changes_share(struct fact_changes *changes)
{
    if (changes)
        atomic_fetch_add_explicit(&changes->references, 1, memory_order_relaxed);
    return changes;
}

void
fact_changes_release(struct fact_changes *changes)
{
    if (!changes || atomic_fetch_sub_explicit(&changes->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_cond_destroy(&changes->changed);
    pthread_mutex_destroy(&changes->lock);
    free(changes);
}

void
fact_changes_note(struct fact_changes *changes)
{
    if (!changes)
        return;
    pthread_mutex_lock(&changes->lock);
    changes->count++;
    pthread_cond_broadcast(&changes->changed);
    pthread_mutex_unlock(&changes->lock);
}

void
fact_changes_stop(struct fact_changes *changes)
{
    pthread_mutex_lock(&changes->lock);
    changes->is_stopped = true;
    pthread_cond_broadcast(&changes->changed);
    pthread_mutex_unlock(&changes->lock);
}

bool
fact_changes_wait(struct fact_changes *changes, uint64_t *seen, uint32_t timeout_ms)
{
    struct timespec until = clock_after_ms(timeout_ms);
    int timed_out = 0;
    pthread_mutex_lock(&changes->lock);
    while (changes->count == *seen && !changes->is_stopped && !timed_out) {
        if (timeout_ms)
            timed_out =
                pthread_cond_clockwait(&changes->changed, &changes->lock, CLOCK_MONOTONIC, &until);
        else
            pthread_cond_wait(&changes->changed, &changes->lock);
    }
    *seen = changes->count;
    bool goes_on = !changes->is_stopped;
    pthread_mutex_unlock(&changes->lock);
    return goes_on;
}
