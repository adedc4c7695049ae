/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/loop/timers.c */
#include "rpc/loop/timers.h"

#include <stdlib.h>

#include "base/attributes.h"
#include "check.h"

#define MANY 500u

struct test_timer {
    struct timer timer; /* first */
    unsigned fired;
    uint64_t order; /* which one it was to fire, from 1 */
};

static struct timers timers;
static uint64_t fired_so_far;

static void
note_fired(struct timer *timer)
{
    struct test_timer *test = (struct test_timer *)timer;
    test->fired++;
    test->order = ++fired_so_far;
}

static void
arm(struct test_timer *test, uint64_t at)
{
    test->timer.fire = note_fired;
    timers_arm(&timers, &test->timer, at);
}

static void
the_clock_goes_forward(void)
{
    uint64_t first = timers_now();
    uint64_t second = timers_now();
    CHECK(first > 0 && second >= first);
}

static void
no_timer_has_no_next_time(void)
{
    uint64_t at = 7;
    CHECK(!timers_next(&timers, &at));
    CHECK_NUMBER(at, 7);
    timers_fire_due(&timers, UINT64_MAX);
}

static void
only_what_is_due_fires(void)
{
    struct test_timer early = {0}, late = {0};
    uint64_t at;
    arm(&late, 200);
    arm(&early, 100);
    CHECK(timers_next(&timers, &at));
    CHECK_NUMBER(at, 100);
    timers_fire_due(&timers, 99);
    CHECK_NUMBER(early.fired, 0);
    timers_fire_due(&timers, 100);
    CHECK_NUMBER(early.fired, 1);
    CHECK(!timer_is_armed(&early.timer));
    CHECK_NUMBER(late.fired, 0);
    timers_fire_due(&timers, UINT64_MAX);
    CHECK_NUMBER(late.fired, 1);
    CHECK(!timers_next(&timers, &at));
}

static void
many_timers_fire_once_in_the_order_of_their_times(void)
{
    static struct test_timer many[MANY];
    memset(many, 0, sizeof many);
    fired_so_far = 0;
    srand(4711);
    for (size_t i = 0; i < MANY; i++)
        arm(&many[i], (uint64_t)(rand() % 1000));
    timers_fire_due(&timers, 1000);
    for (size_t i = 0; i < MANY; i++) {
        CHECK_NUMBER(many[i].fired, 1);
        for (size_t j = 0; j < i; j++)
            if (many[i].timer.at < many[j].timer.at && many[i].order > many[j].order)
                CHECK_NUMBER(many[i].order, many[j].order);
    }
}

/* A third is disarmed, a third is moved: what is left of the heap must still be in order. */
static void
disarmed_timers_never_fire_and_moved_ones_fire_at_their_new_time(void)
{
    static struct test_timer many[MANY];
    memset(many, 0, sizeof many);
    srand(815);
    for (size_t i = 0; i < MANY; i++)
        arm(&many[i], (uint64_t)(rand() % 1000));
    for (size_t i = 0; i < MANY; i++) {
        if (i % 3 == 0)
            timers_disarm(&timers, &many[i].timer);
        else if (i % 3 == 1)
            arm(&many[i], (uint64_t)(1000 + rand() % 1000));
    }
    timers_fire_due(&timers, 999);
    for (size_t i = 0; i < MANY; i++)
        CHECK_NUMBER(many[i].fired, i % 3 == 2);
    timers_fire_due(&timers, 2000);
    for (size_t i = 0; i < MANY; i++)
        CHECK_NUMBER(many[i].fired, i % 3 != 0);
}

static void
disarming_twice_is_harmless(void)
{
    struct test_timer timer = {0};
    timers_disarm(&timers, &timer.timer);
    arm(&timer, 5);
    timers_disarm(&timers, &timer.timer);
    timers_disarm(&timers, &timer.timer);
    timers_fire_due(&timers, 10);
    CHECK_NUMBER(timer.fired, 0);
}

static struct test_timer other;

static void
arm_again_and_disarm_other(struct timer *timer)
{
    note_fired(timer);
    timers_disarm(&timers, &other.timer);
    if (((struct test_timer *)timer)->fired < 3)
        timers_arm(&timers, timer, timer->at + 10);
}

static void
a_timer_may_arm_itself_and_disarm_others_while_it_fires(void)
{
    struct test_timer timer = {0};
    other = (struct test_timer){0};
    arm(&timer, 10);
    arm(&other, 11);
    timer.timer.fire = arm_again_and_disarm_other;
    timers_fire_due(&timers, 25);
    CHECK_NUMBER(timer.fired, 2);
    CHECK_NUMBER(other.fired, 0);
    timers_fire_due(&timers, 100);
    CHECK_NUMBER(timer.fired, 3);
}

int
main(void)
{
    the_clock_goes_forward();
    no_timer_has_no_next_time();
    only_what_is_due_fires();
    many_timers_fire_once_in_the_order_of_their_times();
    disarmed_timers_never_fire_and_moved_ones_fire_at_their_new_time();
    disarming_twice_is_harmless();
    a_timer_may_arm_itself_and_disarm_others_while_it_fires();
    timers_clear(&timers);
    return check_report("test_timers");
}
