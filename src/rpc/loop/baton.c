/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs the event loop: see baton.h.
 *
 * DESIGN. One number says who has the baton. It is even while the thread that has it runs the loop; to lend it to a handler makes it odd, and then
 * the handler's thread, when it comes back, and the deputy both try to make it even: who succeeds has the baton. No lock is held while a
 * handler runs, and everything the one thread did to the loop the other sees.
 *
 * The deputy sleeps in a timerfd. To set it wakes nobody, so a handler that comes back soon costs one system call and no wake-up in its
 * way; and it is set only if it is not set already, which under load is once in a millisecond. An idle loop sets none. (A deputy that
 * is woken by a futex for every first call was rejected: that wake-up is just what is to be saved.)
 *
 * At most one handler has the baton, and while it runs after it has lost it there is no deputy: the loop lends only when no
 * other call runs (loop.c).
 */
#include "rpc/loop/baton.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rpc/loop/timers.h"

/* What this thread's handler was lent. */
static _Thread_local struct {
    struct baton *baton; /* NULL: nothing */
    uint64_t round;
} lent;

/* ---- the alarm ---- */

static void
set_alarm(struct baton *baton, uint64_t ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)}};
    timerfd_settime(baton->alarm, 0, &when, NULL);
}

static void
ring_now(struct baton *baton)
{
    set_alarm(baton, 1);
}

static void
wait_for_alarm(struct baton *baton)
{
    uint64_t times;
    while (read(baton->alarm, &times, sizeof times) < 0 && errno == EINTR)
        ;
}

/* ---- the deputy ---- */

static bool
is_lent(uint64_t round)
{
    return round & 1;
}

/* Makes the round even. False: the other one has. */
static bool
end_round(struct baton *baton, uint_fast64_t round)
{
    return atomic_compare_exchange_strong(&baton->round, &round, round + 1);
}

/*
 * After an alarm: true if the baton is this thread's now. That no alarm is set is said before the round is looked at, and a round begins before its
 * thread looks whether one is set: so one of them sets it.
 */
static bool
look(struct baton *baton)
{
    atomic_store(&baton->is_armed, false);
    uint64_t round = atomic_load(&baton->round);
    if (!is_lent(round))
        return false;
    uint64_t until = atomic_load(&baton->lent_at) + BATON_PATIENCE_NS;
    uint64_t now = timers_now();
    if (now < until && !atomic_exchange(&baton->is_armed, true))
        set_alarm(baton, until - now);
    /* Looked at last: whoever asks after this rings after it, too. */
    bool is_wanted = now >= until || atomic_load(&baton->asked) == round;
    return is_wanted && end_round(baton, round);
}

/* False: the loop has ended. */
static bool
take_over(struct baton *baton)
{
    while (!atomic_load(&baton->has_ended)) {
        wait_for_alarm(baton);
        if (look(baton))
            return true;
    }
    return false;
}

static void
carry(struct baton *baton)
{
    if (!baton->carry(baton->argument))
        return;
    atomic_store(&baton->has_ended, true);
    if (baton->has_deputy)
        ring_now(baton);
}

static void *
first_main(void *argument)
{
    struct baton *baton = argument;
    do {
        carry(baton);
    } while (take_over(baton));
    return NULL;
}

static void *
deputy_main(void *argument)
{
    struct baton *baton = argument;
    while (take_over(baton))
        carry(baton);
    return NULL;
}

bool
baton_find_deputy(struct baton *baton)
{
    if (baton->has_deputy)
        return true;
    baton->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (baton->alarm < 0)
        return false;
    baton->has_deputy = true; /* before it may look */
    if (pthread_create(&baton->threads[1], NULL, deputy_main, baton) != 0) {
        baton->has_deputy = false;
        close(baton->alarm);
    }
    return baton->has_deputy;
}

/* ---- lending ---- */

static uint64_t
lend(struct baton *baton)
{
    atomic_store(&baton->lent_at, timers_now());
    uint64_t round = atomic_load(&baton->round) + 1;
    atomic_store(&baton->round, round);
    if (!atomic_exchange(&baton->is_armed, true))
        set_alarm(baton, BATON_PATIENCE_NS);
    return round;
}

bool
baton_run_work(struct baton *baton, struct work *work)
{
    uint64_t round = lend(baton);
    lent.baton = baton;
    lent.round = round;
    work->run(work);
    lent.baton = NULL;
    return end_round(baton, round);
}

void
baton_give_up(void)
{
    struct baton *baton = lent.baton;
    if (!baton || atomic_load(&baton->round) != lent.round)
        return;
    if (atomic_exchange(&baton->asked, lent.round) != lent.round)
        ring_now(baton);
}

/* ---- life ---- */

/* Signals are the main thread's business: these threads block them all, and so do those that they start. */
static int
start_first(struct baton *baton)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&baton->threads[0], NULL, first_main, baton);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

struct error *
baton_open(struct baton *baton, bool (*carry_it)(void *argument), void *argument)
{
    *baton = (struct baton){.carry = carry_it, .argument = argument};
    int failed = start_first(baton);
    return failed ? error_from_errno(failed, "start the loop thread") : NULL;
}

void
baton_close(struct baton *baton)
{
    pthread_join(baton->threads[0], NULL);
    if (!baton->has_deputy)
        return;
    pthread_join(baton->threads[1], NULL);
    close(baton->alarm);
}
