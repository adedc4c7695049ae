/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs the event loop: the thread that has the baton. Internal to rpc/.
 *
 * The thread that has it may run a handler itself, between two turns of the loop, which saves the two wake-ups of a worker's way. A second thread,
 * the deputy, sees to it that the loop does not wait for long: it takes the baton from a handler that does not come back soon, and the two
 * threads have changed places. "The loop thread" is whichever has the baton.
 */
#ifndef RPC_LOOP_BATON_H
#define RPC_LOOP_BATON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rpc/loop/workers.h"

/* A handler may keep the baton so long. */
#define BATON_PATIENCE_NS UINT64_C(1000000)

struct baton {
    /* Runs the loop until it ends (true) or until the baton has been taken (false). */
    bool (*carry)(void *argument);
    void *argument;
    pthread_t threads[2];
    bool has_deputy;            /* threads[1] and the alarm are there */
    atomic_uint_fast64_t round; /* odd: lent to a handler; whoever makes it even has the baton */
    atomic_uint_fast64_t asked; /* the round whose handler waits for the loop */
    atomic_uint_fast64_t lent_at;
    atomic_bool is_armed; /* the alarm is set: the deputy will look */
    atomic_bool has_ended;
    int alarm; /* a timerfd, which the deputy reads */
};

/* Starts the thread that carries it first. */
MUST_CHECK struct error *baton_open(struct baton *baton, bool (*carry)(void *argument),
                                    void *argument);

/* Waits for the threads, once `carry` has said or will say that the loop has ended. */
void baton_close(struct baton *baton);

/* For the thread that has the baton: is there, from now on, a deputy? It is started when it is needed first. */
bool baton_find_deputy(struct baton *baton);

/* The same: runs the work on this thread. False: the deputy has the baton now, and this thread must leave the loop alone. */
bool baton_run_work(struct baton *baton, struct work *work);

/* Any thread that is about to wait for a loop: if it has a baton, the deputy takes it at once. */
void baton_give_up(void);

#endif
