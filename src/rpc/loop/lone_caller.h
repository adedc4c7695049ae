/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether clients make one call at a time. A lone caller waits for every wake-up that its call
 * causes. There are four: the loop, a worker, the loop again, the client. The loop avoids the first
 * three. Its own thread runs the handler if the method is usually short (loop_threads.h), and
 * before it sleeps it polls for the next call for about as long as the last one took to arrive.
 * Waking a sleeping core takes 50 to 100 microseconds on many machines, more than the rest of a
 * small call.
 *
 * Concurrent callers are served by the workers in parallel, and the loop sleeps when it has nothing
 * to do. Streams do not count as calls: they mostly wait.
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
/* Calls that must come one at a time before a caller counts as alone again. */
#define LONE_CALLER_PROBATION 32u

struct lone_caller {
    size_t calls;        /* under way */
    unsigned probation;  /* calls left until a caller counts as alone */
    uint64_t poll_ns;    /* how long to poll before sleeping; 0: not at all */
    uint64_t idle_since; /* when the loop ran out of work */
};

void lone_caller_begin_call(struct lone_caller *lone);
void lone_caller_end_call(struct lone_caller *lone);

/* Another caller has waited for the loop. */
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

/* Whether to go on polling instead of sleeping. */
static inline bool
lone_caller_polls(const struct lone_caller *lone, uint64_t now)
{
    return !lone->probation && now - lone->idle_since < lone->poll_ns;
}

/* Input from a socket has just been processed. */
void lone_caller_note_event(struct lone_caller *lone, uint64_t now);

/* The loop thread has just run a handler: the wait for the next call begins. */
static inline void
lone_caller_note_work(struct lone_caller *lone, uint64_t now)
{
    lone->idle_since = now;
}

/* ---- short methods ---- */

/* How long the handler of a method takes: a moving average over about eight runs. */
struct handler_time {
    uint64_t average_ns;
};

void handler_time_add(struct handler_time *time, uint64_t ns);

/* A handler that is not short must not run on the loop thread: other calls would wait for it. */
bool handler_time_is_short(const struct handler_time *time);

#endif
