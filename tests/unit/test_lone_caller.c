/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/loop/lone_caller.c: whom the loop serves by itself, and how long it polls before it sleeps. */
#include "check.h"
#include "rpc/loop/lone_caller.h"

#define US UINT64_C(1000)

/* Events that come so far apart, from a time on. */
static uint64_t
come(struct lone_caller *lone, uint64_t now, uint64_t apart, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        lone_caller_note_event(lone, now += apart);
    return now;
}

static void
it_does_not_poll_at_first(void)
{
    struct lone_caller lone = {0};
    CHECK(!lone_caller_polls(&lone, 5000 * US));
    lone_caller_note_event(&lone, 5000 * US);
    CHECK(!lone_caller_polls(&lone, 5000 * US));
}

static void
it_polls_for_what_comes_soon(void)
{
    struct lone_caller lone = {0};
    uint64_t now = come(&lone, 5000 * US, 150 * US, 8);
    CHECK(lone_caller_polls(&lone, now + 150 * US));
    CHECK(!lone_caller_polls(&lone, now + LONE_CALLER_MAX_POLL_NS));
}

static void
it_sleeps_until_what_comes_late(void)
{
    struct lone_caller lone = {0};
    uint64_t now = come(&lone, 5000 * US, 150 * US, 8);
    now = come(&lone, now, 1000 * US, 8);
    CHECK(!lone_caller_polls(&lone, now));
}

static void
one_late_event_does_not_end_it(void)
{
    struct lone_caller lone = {0};
    uint64_t now = come(&lone, 5000 * US, 60 * US, 8);
    now = come(&lone, now, 1000 * US, 1);
    CHECK(lone_caller_polls(&lone, now + 30 * US));
}

static void
it_polls_no_longer_than_it_must(void)
{
    struct lone_caller lone = {0};
    uint64_t now = come(&lone, 5000 * US, 30 * US, 100);
    CHECK(lone_caller_polls(&lone, now + 30 * US));
    CHECK(!lone_caller_polls(&lone, now + 60 * US));
}

static void
call(struct lone_caller *lone, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        lone_caller_begin_call(lone);
        lone_caller_end_call(lone);
    }
}

static void
callers_side_by_side_are_not_alone_for_a_while(void)
{
    struct lone_caller lone = {0};
    uint64_t now = come(&lone, 5000 * US, 60 * US, 8);
    CHECK(lone_caller_is_alone(&lone));
    lone_caller_begin_call(&lone);
    call(&lone, 1); /* while the first is under way */
    lone_caller_end_call(&lone);
    call(&lone, LONE_CALLER_PROBATION - 1);
    CHECK(!lone_caller_is_alone(&lone));
    CHECK(!lone_caller_polls(&lone, now));
    call(&lone, 1);
    CHECK(lone_caller_is_alone(&lone));
    CHECK(lone_caller_polls(&lone, now));
}

static void
a_method_is_short_until_it_takes_long_more_than_now_and_then(void)
{
    struct handler_time time = {0};
    CHECK(handler_time_is_short(&time));
    for (unsigned i = 0; i < 100; i++)
        handler_time_add(&time, i % 8 ? 100 * US : 20000 * US);
    CHECK(handler_time_is_short(&time));
    for (unsigned i = 0; i < 8; i++)
        handler_time_add(&time, 20000 * US);
    CHECK(!handler_time_is_short(&time));
    for (unsigned i = 0; i < 16; i++)
        handler_time_add(&time, 100 * US);
    CHECK(handler_time_is_short(&time));
}

int
main(void)
{
    it_does_not_poll_at_first();
    it_polls_for_what_comes_soon();
    it_sleeps_until_what_comes_late();
    one_late_event_does_not_end_it();
    it_polls_no_longer_than_it_must();
    callers_side_by_side_are_not_alone_for_a_while();
    a_method_is_short_until_it_takes_long_more_than_now_and_then();
    return check_report("test_lone_caller");
}
