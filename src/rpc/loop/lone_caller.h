/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether clients make one call at a time. A lone caller waits for every wake-up on the way of its
 * call, and there are four: of the loop, of a worker, of the loop again, of the client. The loop saves
 * it three of them. Its own thread runs the handler if the method is usually short (loop_threads.h),
 * and before it sleeps it polls for the next call for about as long as the last one took to come: to
 * wake a core that has gone to sleep takes 50 to 100 microseconds on many machines, more than
 * everything else about a small call.
 *
 * Callers that come side by side are served side by side, by the workers, and the loop sleeps when it
 * has nothing to do. Streams do not count: most of the time they wait for something.
 *
 * Loop thread only. Times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef RPC_LOOP_LONE_CALLER_H
#define RPC_LOOP_LONE_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest poll: longer than a driver takes for a small call. */
#define LONE_CALLER_MAX_POLL_NS 400000u
/* So many calls must come one at a time before a caller counts as alone again. */
#define LONE_CALLER_PROBATION 32u

struct lone_caller {
    size_t calls;        /* under way */
    unsigned probation;  /* calls to come before a caller counts as alone */
    uint64_t poll_ns;    /* how long to poll before sleeping; 0: not at all */
    uint64_t idle_since; /* the loop has had nothing to do */
};

/* A call begins. */
void lone_caller_begin_call(struct lone_caller *lone);
void lone_caller_end_call(struct lone_caller *lone);

/* Somebody else has waited for the loop meanwhile. */
static inline void
lone_caller_note_company(struct lone_caller *lone)
{
    lone->probation = LONE_CALLER_PROBATION;
}

static inline bool
lone_caller_is_alone(const struct lone_caller *lone)
{
    return !lone->probation;
}

/* Poll on, instead of sleeping? */
static inline bool
lone_caller_polls(const struct lone_caller *lone, uint64_t now)
{
    return !lone->probation && now - lone->idle_since < lone->poll_ns;
}

/* Something has come from a socket, and has been dealt with by now. */
void lone_caller_note_event(struct lone_caller *lone, uint64_t now);

/* The loop's thread has run a handler until now: the wait for the next call begins. */
static inline void
lone_caller_note_work(struct lone_caller *lone, uint64_t now)
{
    lone->idle_since = now;
}

/* ---- short methods ---- */

/* How long the handlers of a method take: a moving average over about eight runs. */
struct handler_time {
    uint64_t average_ns;
};

void handler_time_add(struct handler_time *time, uint64_t ns);

/* While the loop's own thread runs a slow handler, others may wait for it. */
bool handler_time_is_short(const struct handler_time *time);

#endif
