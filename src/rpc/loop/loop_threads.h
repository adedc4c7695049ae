/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread runs the event loop. Internal to rpc/.
 *
 * The thread that runs the loop may run a handler itself, between two turns, which saves the two
 * wake-ups of a hand-over to a worker. A standby thread sees to it that the loop does not wait long: it
 * takes the loop over from a handler that does not return soon, and the two threads have changed
 * places. "The loop thread" is whichever runs the loop now.
 */
#ifndef RPC_LOOP_LOOP_THREADS_H
#define RPC_LOOP_LOOP_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rpc/loop/workers.h"

/* A handler may keep the loop waiting for so long. */
#define LOOP_THREADS_PATIENCE_NS UINT64_C(1000000)

struct loop_threads {
    /* Runs the loop until it ends (true) or until the other thread has taken it over (false). */
    bool (*run_loop)(void *argument);
    void *argument;
    pthread_t threads[2];
    bool has_standby;              /* threads[1] and the alarm are there */
    atomic_uint_fast64_t round;    /* odd: a handler runs; whoever makes it even runs the loop */
    atomic_uint_fast64_t asked;    /* the round whose handler waits for the loop */
    atomic_uint_fast64_t began_at; /* of the handler that runs */
    atomic_bool is_armed;          /* the alarm is set: the standby thread will look */
    atomic_bool has_ended;
    int alarm; /* a timerfd that the standby thread reads */
};

/* Starts the first thread. */
MUST_CHECK struct error *loop_threads_open(struct loop_threads *threads,
                                           bool (*run)(void *argument), void *argument);

/* Waits for both threads, once `run` has returned true or will. */
void loop_threads_close(struct loop_threads *threads);

/* Loop thread: starts the standby thread if there is none. False: it cannot be started. */
bool loop_threads_start_standby(struct loop_threads *threads);

/* Loop thread: runs the work here. False: the other thread runs the loop now, and this one must not
   touch it. There must be a standby thread. */
bool loop_threads_run_work(struct loop_threads *threads, struct work *work);

/* Any thread that is about to wait for a loop: if it is a handler that keeps the loop waiting, the
   standby thread takes over at once. */
void loop_threads_yield(void);

#endif
