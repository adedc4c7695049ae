/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/loop/loop_threads.c: one thread at a time runs the loop, and a handler keeps it for a moment only. */
#include "rpc/loop/loop_threads.h"

#include "rpc_ends.h"

/* In place of the loop. What has no word beside it belongs to the thread that has the loop, without a lock: ThreadSanitizer sees to it. */
struct rig {
    struct work work; /* first */
    struct loop_threads threads;
    unsigned pieces;        /* of work, still to be run */
    unsigned kept;          /* after so many the loop was still there */
    unsigned carried;       /* so many times a thread has got it */
    unsigned longest_us;    /* they take up to so long, each another time */
    unsigned work_us;       /* this and the next are the work's while it runs */
    uint64_t quickest_ns;   /* to lose the loop that it gave up */
    bool waits_for_loop;    /* so does the work, too */
    atomic_bool is_working; /* any thread */
    struct gate ended;      /* any thread */
};

static void
sleep_us(unsigned us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&time, NULL);
}

static void
work(struct work *work)
{
    struct rig *rig = (struct rig *)work;
    uint64_t round = atomic_load(&rig->threads.round);
    if (rig->waits_for_loop) {
        uint64_t start = timers_now();
        loop_threads_yield();
        for (unsigned i = 0; i < PATIENCE_MS * 10 && atomic_load(&rig->threads.round) == round; i++)
            sleep_us(100);
        uint64_t took = timers_now() - start;
        rig->quickest_ns = took < rig->quickest_ns ? took : rig->quickest_ns;
    }
    if (rig->work_us)
        sleep_us(rig->work_us);
    atomic_store(&rig->is_working, false);
}

/* As in the loop, the next piece is begun only when the one before has come back. */
static bool
run_loop(void *argument)
{
    struct rig *rig = argument;
    rig->carried++;
    for (; rig->pieces; rig->kept++) {
        for (unsigned i = 0; i < PATIENCE_MS * 10 && atomic_load(&rig->is_working); i++)
            sleep_us(100);
        rig->work_us = rig->longest_us ? rig->pieces * 7919 % rig->longest_us : 0;
        rig->pieces--;
        atomic_store(&rig->is_working, true);
        if (!loop_threads_start_standby(&rig->threads) ||
            !loop_threads_run_work(&rig->threads, &rig->work))
            return false;
    }
    gate_pass(&rig->ended);
    return true;
}

static void
run_rig(struct rig *rig, unsigned pieces)
{
    rig->work.run = work;
    rig->pieces = pieces;
    rig->ended = (struct gate)GATE_INIT;
    succeed(loop_threads_open(&rig->threads, run_loop, rig));
    loop_threads_close(&rig->threads);
    CHECK_NUMBER(gate_count(&rig->ended), 1);
    CHECK_NUMBER(rig->pieces, 0);
    /* Each piece but those of which one thread made the other begin left the loop where it was. */
    CHECK_NUMBER(rig->kept + rig->carried - 1, pieces);
}

static void
a_loop_without_work_has_one_thread(void)
{
    struct rig rig = {0};
    run_rig(&rig, 0);
    CHECK(!rig.threads.has_standby);
}

/* Only a machine that stops for a millisecond takes it from some. */
static void
short_work_keeps_the_loop(void)
{
    struct rig rig = {0};
    run_rig(&rig, 2000);
    CHECK(rig.kept > 1000);
}

static void
work_that_takes_long_loses_it(void)
{
    struct rig rig = {.longest_us = 40000};
    uint64_t start = timers_now();
    run_rig(&rig, 20);
    CHECK(rig.carried > 15);
    CHECK(ms_since(start) < PATIENCE_MS);
}

/* What comes back just when the standby thread loses patience has it, or the standby thread has, but not both and not none. */
static void
it_is_never_lost_nor_there_twice(void)
{
    struct rig rig = {.longest_us = 2 * LOOP_THREADS_PATIENCE_NS / 1000};
    run_rig(&rig, 400);
    CHECK(rig.kept > 5);
    CHECK(rig.carried > 20);
}

static void
work_that_waits_for_the_loop_loses_it_at_once(void)
{
    struct rig rig = {.waits_for_loop = true, .quickest_ns = UINT64_MAX};
    run_rig(&rig, 300);
    CHECK_NUMBER(rig.carried, 301);
    CHECK(rig.quickest_ns < LOOP_THREADS_PATIENCE_NS / 2);
}

static void
who_has_none_cannot_give_it_up(void)
{
    struct rig rig = {0};
    loop_threads_yield();
    run_rig(&rig, 1);
    CHECK_NUMBER(atomic_load(&rig.threads.asked), 0);
}

int
main(void)
{
    a_loop_without_work_has_one_thread();
    short_work_keeps_the_loop();
    work_that_takes_long_loses_it();
    it_is_never_lost_nor_there_twice();
    work_that_waits_for_the_loop_loses_it_at_once();
    who_has_none_cannot_give_it_up();
    return check_report("test_loop_threads");
}
