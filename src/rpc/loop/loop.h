/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: one thread that owns all sockets, HTTP/2 sessions and timers. Internal to rpc/. Which thread that is may change between two
 * turns (loop_threads.h).
 *
 * Rules of the thread: whatever lives on the loop is touched by the loop thread only. Another thread hands a `struct task` to
 * loop_post, and the loop runs it. What a turn of the loop wants to write is collected (loop_want_flush) and goes out at the end of the turn, or
 * before, when it is enough to keep those busy who wait for it (loop_flush_early).
 */
#ifndef RPC_LOOP_LOOP_H
#define RPC_LOOP_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/error.h"
#include "base/log.h"
#include "rpc/loop/admission.h"
#include "rpc/loop/blocks.h"
#include "rpc/loop/lone_caller.h"
#include "rpc/loop/loop_threads.h"
#include "rpc/loop/timers.h"
#include "rpc/loop/workers.h"

#define LOOP_READ_BYTES (256u * 1024)
#define LOOP_WRITE_BYTES (128u * 1024)

/* Something with bytes to write: a connection. */
struct output {
    struct output *next;
    bool is_listed; /* it is flushed at the end of the turn */
    void (*flush)(struct output *output);
};

struct task {
    struct task *next;
    void (*run)(struct task *task);
};

struct loop {
    uv_loop_t uv;
    struct loop_threads threads;
    uv_async_t wake;
    uv_prepare_t end_of_turn;
    uv_timer_t timer;
    uv_timer_t relief; /* runs while work waits for a worker */
    struct timers timers;
    pthread_mutex_t inbox_lock;
    struct task *inbox;
    struct task **inbox_last;
    atomic_bool is_waiting; /* in the kernel, or about to: whoever posts must wake it */
    bool stop;              /* set by a task */
    struct output *outputs; /* that have something to write */
    unsigned unflushed;     /* header blocks that were read since outputs were flushed last */
    struct workers *workers;
    struct work *batch; /* what this turn has submitted */
    struct work **batch_last;
    size_t batch_count;
    struct lone_caller lone;
    bool had_input;       /* from a socket, in this turn */
    size_t running_calls; /* that were submitted as work and have not come back */
    struct admission admission;
    struct blocks blocks; /* loop thread only */
    struct work trim;
    atomic_bool is_trimming;
    const struct log *log;
    uint8_t *read_buffer;  /* LOOP_READ_BYTES, for the connection that is being read */
    uint8_t *write_buffer; /* LOOP_WRITE_BYTES, for the connection that is being written */
};

struct loop_options {
    const struct log *log;
    unsigned max_workers;
    size_t max_queued_calls;
    size_t max_buffered_bytes;
};

MUST_CHECK struct error *loop_open(const struct loop_options *options, struct loop **out);

/* Waits for the workers, then for the loop thread. Every server and channel must be closed before. */
void loop_close(struct loop *loop);

/* Runs task->run on the loop thread. Any thread. */
void loop_post(struct loop *loop, struct task *task);

/* Loop thread: it has something to do, and looks into its inbox before it waits again. */
static inline void
loop_note_awake(struct loop *loop)
{
    atomic_store_explicit(&loop->is_waiting, false, memory_order_relaxed);
}

/* Runs `function(argument)` on the loop thread and waits for it. Not from the loop thread. */
void loop_run(struct loop *loop, void (*function)(void *argument), void *argument);

/*
 * Loop thread: hands work to the pool, with the rest of this turn's; short work that is all there is to do is run by the loop's own thread,
 * at the end of the turn. False: the pool's queue is full.
 */
bool loop_submit_work(struct loop *loop, struct work *work);

/* Loop thread: work that was submitted has been done, and what it told the loop has been heard. */
void loop_note_work_done(struct loop *loop);

/*
 * Loop thread: a worker gives the heap's free memory back to the system. It has the lock of the heap meanwhile, which may be milliseconds: whoever needs
 * more than his `blocks` waits for it, the loop too. So this is for rare moments. False: not now.
 */
bool loop_trim_heap(struct loop *loop);

void loop_arm(struct loop *loop, struct timer *timer, uint64_t at);
void loop_disarm(struct loop *loop, struct timer *timer);

/* Loop thread: flushes the output at the end of this turn, or before. */
void loop_want_flush(struct loop *loop, struct output *output);
/* Loop thread: the output is never flushed again. */
void loop_forget_output(struct loop *loop, struct output *output);
/* Loop thread, behind the reading of a connection: flushes all outputs if enough has been read. */
void loop_flush_early(struct loop *loop);

#endif
