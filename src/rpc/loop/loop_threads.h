/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread runs the event loop. Internal to rpc/.
 *
 * The loop thread may run a handler itself, between two turns. That saves the two wake-ups of
 * handing it to a worker. A standby thread keeps the loop from waiting long: if the handler does
 * not return soon, the standby thread takes over the loop and the two threads swap roles. "The loop
 * thread" is whichever runs the loop now.
 */
#ifndef RPC_LOOP_LOOP_THREADS_H
#define RPC_LOOP_LOOP_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rpc/loop/workers.h"

/* How long a handler may keep the loop waiting. */
#define LOOP_THREADS_PATIENCE_NS UINT64_C(1000000)

struct loop_threads {
    /* Runs the loop until it ends (true) or until the other thread has taken it over (false). */
    bool (*run_loop)(void *argument);
    void *argument;
    pthread_t threads[2];
    bool has_standby;              /* threads[1] and the alarm exist */
    atomic_uint_fast64_t round;    /* odd: a handler runs; whoever makes it even runs the loop */
    atomic_uint_fast64_t asked;    /* the round whose handler waits for the loop */
    atomic_uint_fast64_t began_at; /* of the handler that runs */
    atomic_bool is_armed;          /* the alarm is set: the standby thread will check */
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

/*
 * Loop thread: runs the work on this thread. Returns false if the other thread has taken over the
 * loop; then this one must not touch it. A standby thread must exist.
 */
bool loop_threads_run_work(struct loop_threads *threads, struct work *work);

/*
 * Any thread, before it waits for the loop. If the loop itself waits for this thread's handler, the
 * standby thread takes over at once.
 */
void loop_threads_yield(void);

#endif
