/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of deadlines: see timers.h. */
#include "rpc/loop/timers.h"

#include <stdlib.h>
#include <time.h>

#include "base/memory.h"

uint64_t
timers_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
put(struct timers *timers, struct timer *timer, size_t index)
{
    timers->heap[index] = timer;
    timer->index = index;
}

static void
move_up(struct timers *timers, struct timer *timer)
{
    size_t index = timer->index;
    while (index > 1 && timers->heap[index / 2]->at > timer->at) {
        put(timers, timers->heap[index / 2], index);
        index /= 2;
    }
    put(timers, timer, index);
}

static void
move_down(struct timers *timers, struct timer *timer)
{
    size_t index = timer->index;
    for (;;) {
        size_t child = index * 2;
        if (child > timers->count)
            break;
        if (child < timers->count && timers->heap[child + 1]->at < timers->heap[child]->at)
            child++;
        if (timers->heap[child]->at >= timer->at)
            break;
        put(timers, timers->heap[child], index);
        index = child;
    }
    put(timers, timer, index);
}

void
timers_arm(struct timers *timers, struct timer *timer, uint64_t at)
{
    timer->at = at;
    if (!timer->index) {
        if (timers->count + 2 > timers->capacity) {
            timers->capacity = timers->capacity ? timers->capacity * 2 : 64;
            timers->heap = memory_resize(timers->heap, timers->capacity * sizeof *timers->heap);
        }
        put(timers, timer, ++timers->count);
    }
    move_up(timers, timer);
    move_down(timers, timer);
}

void
timers_disarm(struct timers *timers, struct timer *timer)
{
    if (!timer->index)
        return;
    size_t index = timer->index;
    timer->index = 0;
    struct timer *last = timers->heap[timers->count--];
    if (last == timer)
        return;
    put(timers, last, index);
    move_up(timers, last);
    move_down(timers, last);
}

void
timers_fire_due(struct timers *timers, uint64_t now)
{
    while (timers->count && timers->heap[1]->at <= now) {
        struct timer *due = timers->heap[1];
        timers_disarm(timers, due);
        due->fire(due);
    }
}

bool
timers_next(const struct timers *timers, uint64_t *at)
{
    if (!timers->count)
        return false;
    *at = timers->heap[1]->at;
    return true;
}

void
timers_clear(struct timers *timers)
{
    free(timers->heap);
    *timers = (struct timers){0};
}
