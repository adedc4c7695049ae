/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: one thread that owns all sockets, HTTP/2 sessions and timers. Internal to rpc/.
 * Another thread may take it over between two turns (loop_threads.h).
 *
 * Only the loop thread touches what lives on the loop. Other threads pass a `struct task` to
 * loop_post, and the loop runs it. Connections with something to write register (loop_want_flush);
 * they write at the end of the turn, or earlier once enough has been read (loop_flush_early).
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
    bool is_listed; /* registered for the end of the turn */
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
    atomic_bool is_waiting; /* asleep or about to sleep: loop_post must wake it */
    bool stop;              /* set by a task */
    struct output *outputs; /* those with something to write */
    unsigned unflushed;     /* header blocks read since the last flush */
    struct workers *workers;
    struct work *batch; /* submitted in this turn */
    struct work **batch_last;
    size_t batch_count;
    struct lone_caller lone;
    bool had_input;       /* a socket had input in this turn */
    size_t running_calls; /* submitted as work and not yet done */
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

/* Waits for the workers, then for the loop thread. Close every server and channel first. */
void loop_close(struct loop *loop);

/* Runs task->run on the loop thread. Any thread. */
void loop_post(struct loop *loop, struct task *task);

/* Loop thread: the loop is busy and will look into its inbox before it sleeps. */
static inline void
loop_note_awake(struct loop *loop)
{
    atomic_store_explicit(&loop->is_waiting, false, memory_order_relaxed);
}

/* Runs `function(argument)` on the loop thread and waits for it. Not from the loop thread. */
void loop_run(struct loop *loop, void (*function)(void *argument), void *argument);

/*
 * Loop thread: submits work to the pool at the end of the turn. The loop thread runs it itself if
 * it is short and there is nothing else to do. Returns false if the pool's queue is full.
 */
bool loop_submit_work(struct loop *loop, struct work *work);

/* Loop thread: submitted work is done, and the loop has processed what it posted. */
void loop_note_work_done(struct loop *loop);

/*
 * Loop thread: has a worker return the heap's free memory to the system. That holds the heap's lock
 * for up to milliseconds, and every thread that allocates, the loop included, waits for it. So do
 * this rarely. Returns false if it cannot be done now.
 */
bool loop_trim_heap(struct loop *loop);

void loop_arm(struct loop *loop, struct timer *timer, uint64_t at);
void loop_disarm(struct loop *loop, struct timer *timer);

/* Loop thread: flushes the output at the end of this turn or earlier. */
void loop_want_flush(struct loop *loop, struct output *output);
/* Loop thread: the output is never flushed again. */
void loop_forget_output(struct loop *loop, struct output *output);
/* Loop thread, after reading a connection: flushes all outputs if enough has been read. */
void loop_flush_early(struct loop *loop);

#endif
