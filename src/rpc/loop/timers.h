/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many timers behind one libuv timer: a binary heap of deadlines, so that the deadline of a call is
 * cheap. Loop thread only. Times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef RPC_LOOP_TIMERS_H
#define RPC_LOOP_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    uint64_t at;
    size_t index; /* in the heap, from 1; 0: not armed */
    void (*fire)(struct timer *timer);
};

struct timers {
    struct timer **heap; /* heap[1] is the next to fire */
    size_t count;
    size_t capacity;
};

static inline bool
timer_is_armed(const struct timer *timer)
{
    return timer->index != 0;
}

uint64_t timers_now(void);

/* Arms the timer, or moves it if it is armed. */
void timers_arm(struct timers *timers, struct timer *timer, uint64_t at);
void timers_disarm(struct timers *timers, struct timer *timer);

/* Disarms and fires each timer that is due. */
void timers_fire_due(struct timers *timers, uint64_t now);

/* Sets `*at` to the next deadline; returns false if no timer is armed. */
bool timers_next(const struct timers *timers, uint64_t *at);

void timers_clear(struct timers *timers);

#endif
