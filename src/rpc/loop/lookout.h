/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the loop should go on looking at its sockets for a moment before it sleeps. To wake a core that has gone to sleep takes 50 to 100
 * microseconds on many machines, more than everything else about a small call; where the next event has come soon after the last, it is looked for as long as that took,
 * and where it has not, it is slept for. So an idle server sleeps, and so does one whose calls come now and then.
 *
 * Loop thread only. Times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef RPC_LOOP_LOOKOUT_H
#define RPC_LOOP_LOOKOUT_H

#include <stdbool.h>
#include <stdint.h>

#define LOOKOUT_MOST_NS 400000u /* longer than a driver takes for a small call */
#define LOOKOUT_COMPANY 64u

struct lookout {
    uint64_t window_ns; /* how long to look; 0: not at all */
    uint64_t since;     /* nothing has been done */
    unsigned company;   /* so many events more it sleeps: callers were seen side by side */
};

/* Look on, instead of sleeping? */
static inline bool
lookout_is_on(const struct lookout *lookout, uint64_t now)
{
    return !lookout->company && now - lookout->since < lookout->window_ns;
}

/* Something has come, and been dealt with until now. */
void lookout_note_event(struct lookout *lookout, uint64_t now);

/* What came took until now: the wait for the next begins. */
static inline void
lookout_note_work(struct lookout *lookout, uint64_t now)
{
    lookout->since = now;
}

/* Two calls are under way: there is something to do for others with the time. */
static inline void
lookout_note_company(struct lookout *lookout)
{
    lookout->company = LOOKOUT_COMPANY;
}

#endif
