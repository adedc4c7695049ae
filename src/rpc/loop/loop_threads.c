/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread runs the event loop: see loop_threads.h.
 *
 * DESIGN. A counter, `round`, tells who runs the loop. It is even while a thread runs it. To run a
 * handler, that thread makes it odd. When the handler returns, its thread tries to make it even
 * again; so does the standby thread when it loses patience. The one that succeeds runs the loop. No
 * lock is held while a handler runs, and each thread sees everything the other did to the loop.
 *
 * The standby thread sleeps in a timerfd. Setting a timer wakes nobody, so a handler that returns
 * soon costs one system call and no wake-up. The timer is set only if it is not set already: under
 * load that is once a millisecond, and never while the loop is idle. (Rejected: waking the standby
 * thread by a futex for every call. That wake-up is exactly what this saves.)
 *
 * At most one handler runs this way. If it goes on after it has lost the loop, there is no standby
 * thread meanwhile; the loop runs a handler only if no other call is in progress (loop.c).
 */
#include "rpc/loop/loop_threads.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rpc/loop/timers.h"

/* The loop that waits for this thread's handler. */
static _Thread_local struct {
    struct loop_threads *threads; /* NULL: none */
    uint64_t round;
} waiting;

/* ---- the alarm ---- */

static void
set_alarm(struct loop_threads *threads, uint64_t ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)}};
    timerfd_settime(threads->alarm, 0, &when, NULL);
}

static void
ring_now(struct loop_threads *threads)
{
    set_alarm(threads, 1);
}

static void
wait_for_alarm(struct loop_threads *threads)
{
    uint64_t times;
    while (read(threads->alarm, &times, sizeof times) < 0 && errno == EINTR)
        ;
}

/* ---- the standby thread ---- */

static bool
is_handler_running(uint64_t round)
{
    return round & 1;
}

/* Makes the round even. Returns false if the other thread was first. */
static bool
end_round(struct loop_threads *threads, uint_fast64_t round)
{
    return atomic_compare_exchange_strong(&threads->round, &round, round + 1);
}

/*
 * After an alarm: returns true if this thread must run the loop. It clears is_armed before it reads
 * the round, and a new round begins before its thread reads is_armed: one of them sets the alarm.
 */
static bool
take_if_late(struct loop_threads *threads)
{
    atomic_store(&threads->is_armed, false);
    uint64_t round = atomic_load(&threads->round);
    if (!is_handler_running(round))
        return false;
    uint64_t until = atomic_load(&threads->began_at) + LOOP_THREADS_PATIENCE_NS;
    uint64_t now = timers_now();
    if (now < until && !atomic_exchange(&threads->is_armed, true))
        set_alarm(threads, until - now);
    /* Read last: a thread that asks after this also sets the alarm after this. */
    bool is_wanted = now >= until || atomic_load(&threads->asked) == round;
    return is_wanted && end_round(threads, round);
}

/* Returns false when the loop has ended. */
static bool
take_over(struct loop_threads *threads)
{
    while (!atomic_load(&threads->has_ended)) {
        wait_for_alarm(threads);
        if (take_if_late(threads))
            return true;
    }
    return false;
}

static void
run_loop(struct loop_threads *threads)
{
    if (!threads->run_loop(threads->argument))
        return;
    atomic_store(&threads->has_ended, true);
    if (threads->has_standby)
        ring_now(threads);
}

static void *
first_main(void *argument)
{
    struct loop_threads *threads = argument;
    do {
        run_loop(threads);
    } while (take_over(threads));
    return NULL;
}

static void *
standby_main(void *argument)
{
    struct loop_threads *threads = argument;
    while (take_over(threads))
        run_loop(threads);
    return NULL;
}

bool
loop_threads_start_standby(struct loop_threads *threads)
{
    if (threads->has_standby)
        return true;
    threads->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (threads->alarm < 0)
        return false;
    threads->has_standby = true; /* before the thread reads it */
    if (pthread_create(&threads->threads[1], NULL, standby_main, threads) != 0) {
        threads->has_standby = false;
        close(threads->alarm);
    }
    return threads->has_standby;
}

/* ---- running a handler ---- */

static uint64_t
begin_round(struct loop_threads *threads)
{
    atomic_store(&threads->began_at, timers_now());
    uint64_t round = atomic_load(&threads->round) + 1;
    atomic_store(&threads->round, round);
    if (!atomic_exchange(&threads->is_armed, true))
        set_alarm(threads, LOOP_THREADS_PATIENCE_NS);
    return round;
}

bool
loop_threads_run_work(struct loop_threads *threads, struct work *work)
{
    uint64_t round = begin_round(threads);
    waiting.threads = threads;
    waiting.round = round;
    work->run(work);
    waiting.threads = NULL;
    return end_round(threads, round);
}

void
loop_threads_yield(void)
{
    struct loop_threads *threads = waiting.threads;
    if (!threads || atomic_load(&threads->round) != waiting.round)
        return;
    if (atomic_exchange(&threads->asked, waiting.round) != waiting.round)
        ring_now(threads);
}

/* ---- life ---- */

/* The main thread handles signals. These threads, and those that they start, block them all. */
static int
start_first(struct loop_threads *threads)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&threads->threads[0], NULL, first_main, threads);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

struct error *
loop_threads_open(struct loop_threads *threads, bool (*run)(void *argument), void *argument)
{
    *threads = (struct loop_threads){.run_loop = run, .argument = argument};
    int failed = start_first(threads);
    return failed ? error_from_errno(failed, "start the loop thread") : NULL;
}

void
loop_threads_close(struct loop_threads *threads)
{
    pthread_join(threads->threads[0], NULL);
    if (!threads->has_standby)
        return;
    pthread_join(threads->threads[1], NULL);
    close(threads->alarm);
}
