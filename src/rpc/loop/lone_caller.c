/* SPDX-License-Identifier: Apache-2.0 */
/* See lone_caller.h. The poll time is adapted as hypervisors do it for idle virtual cores. */
#include "rpc/loop/lone_caller.h"

#include "rpc/loop/loop_threads.h"

#define MIN_POLL_NS 25000u

/*
 * A handler that exceeds the loop's patience costs its own caller no more than a worker would, and
 * others one millisecond. So only methods that take several times as long go to workers.
 */
#define SHORT_NS (5 * LOOP_THREADS_PATIENCE_NS)

void
lone_caller_begin_call(struct lone_caller *lone)
{
    if (++lone->calls > 1)
        lone_caller_note_company(lone);
    else if (lone->probation)
        lone->probation--;
}

void
lone_caller_end_call(struct lone_caller *lone)
{
    lone->calls--;
}

void
lone_caller_note_event(struct lone_caller *lone, uint64_t now)
{
    uint64_t waited = now - lone->idle_since;
    lone->idle_since = now;
    if (waited >= LONE_CALLER_MAX_POLL_NS)
        lone->poll_ns = lone->poll_ns / 2 < MIN_POLL_NS ? 0 : lone->poll_ns / 2;
    else if (waited >= lone->poll_ns)
        lone->poll_ns = lone->poll_ns ? 2 * lone->poll_ns : MIN_POLL_NS;
    if (lone->poll_ns > LONE_CALLER_MAX_POLL_NS)
        lone->poll_ns = LONE_CALLER_MAX_POLL_NS;
}

void
handler_time_add(struct handler_time *time, uint64_t ns)
{
    time->average_ns += ns / 8;
    time->average_ns -= time->average_ns / 8;
}

bool
handler_time_is_short(const struct handler_time *time)
{
    return time->average_ns < SHORT_NS;
}
