/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop and its thread: see loop.h. */
#include "rpc/loop/loop.h"

#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

#include "base/memory.h"

#define RELIEF_MS 1
#define INBOX_ROUNDS 4
#define EARLY_FLUSH_HEADERS 8u
#define TRIM_PAD_BYTES (64u << 10)

/* Returns false if the inbox is empty; from then on loop_post wakes the loop. */
static bool
run_inbox(struct loop *loop)
{
    pthread_mutex_lock(&loop->inbox_lock);
    struct task *task = loop->inbox;
    loop->inbox = NULL;
    loop->inbox_last = &loop->inbox;
    atomic_store_explicit(&loop->is_waiting, !task, memory_order_relaxed);
    pthread_mutex_unlock(&loop->inbox_lock);
    bool had_any = task;
    while (task) {
        struct task *next = task->next;
        task->run(task);
        task = next;
    }
    return had_any;
}

/* Nothing to do: waking up is enough, because the end of the turn runs the inbox. */
static void
on_wake(uv_async_t *wake)
{
    (void)wake;
}

void
loop_post(struct loop *loop, struct task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&loop->inbox_lock);
    *loop->inbox_last = task;
    loop->inbox_last = &task->next;
    /* Under the lock: after the loop has seen an empty inbox it may end and close the handle. */
    if (atomic_exchange_explicit(&loop->is_waiting, false, memory_order_relaxed))
        uv_async_send(&loop->wake);
    pthread_mutex_unlock(&loop->inbox_lock);
}

struct run_and_wait {
    struct task task;
    void (*function)(void *argument);
    void *argument;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool done;
};

static void
run_waited_for(struct task *task)
{
    struct run_and_wait *run = (struct run_and_wait *)task;
    run->function(run->argument);
    pthread_mutex_lock(&run->lock);
    run->done = true;
    pthread_cond_signal(&run->finished);
    pthread_mutex_unlock(&run->lock);
}

void
loop_run(struct loop *loop, void (*function)(void *argument), void *argument)
{
    struct run_and_wait run = {
        .task.run = run_waited_for,
        .function = function,
        .argument = argument,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .finished = PTHREAD_COND_INITIALIZER,
    };
    loop_post(loop, &run.task);
    loop_threads_yield();
    pthread_mutex_lock(&run.lock);
    while (!run.done)
        pthread_cond_wait(&run.finished, &run.lock);
    pthread_mutex_unlock(&run.lock);
}

static void
relieve_workers(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    if (!workers_relieve(loop->workers))
        uv_timer_stop(timer);
}

bool
loop_submit_work(struct loop *loop, struct work *work)
{
    if (loop->batch_count >= workers_room(loop->workers))
        return false;
    work->next = NULL;
    *loop->batch_last = work;
    loop->batch_last = &work->next;
    loop->batch_count++;
    loop->running_calls++;
    return true;
}

void
loop_note_work_done(struct loop *loop)
{
    loop->running_calls--;
}

static void
trim_heap(struct work *work)
{
    struct loop *loop = CONTAINER_OF(work, struct loop, trim);
    malloc_trim(TRIM_PAD_BYTES);
    atomic_store(&loop->is_trimming, false);
}

bool
loop_trim_heap(struct loop *loop)
{
    if (atomic_load(&loop->is_trimming) || !loop_submit_work(loop, &loop->trim))
        return false;
    atomic_store(&loop->is_trimming, true);
    loop_note_work_done(loop); /* no call waits for it */
    return true;
}

static struct work *
take_batch(struct loop *loop)
{
    loop->batch_last = &loop->batch;
    loop->batch_count = 0;
    return STEAL(loop->batch);
}

static void
hand_over_batch(struct loop *loop)
{
    if (!loop->batch)
        return;
    size_t count = loop->batch_count;
    bool behind = workers_submit(loop->workers, take_batch(loop), count);
    if (behind && !uv_is_active((uv_handle_t *)&loop->relief))
        uv_timer_start(&loop->relief, relieve_workers, RELIEF_MS, RELIEF_MS);
}

static void fire_timers(uv_timer_t *timer);

static void
schedule_timers(struct loop *loop)
{
    uint64_t at;
    if (!timers_next(&loop->timers, &at)) {
        uv_timer_stop(&loop->timer);
        return;
    }
    uint64_t now = timers_now();
    uint64_t wait_ms = at > now ? (at - now + 999999) / 1000000 : 0;
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->timer, fire_timers, wait_ms, 0);
}

static void
fire_timers(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    timers_fire_due(&loop->timers, timers_now());
    schedule_timers(loop);
}

void
loop_arm(struct loop *loop, struct timer *timer, uint64_t at)
{
    timers_arm(&loop->timers, timer, at);
    if (timer->index == 1)
        schedule_timers(loop);
}

/* The libuv timer stays armed: firing with nothing due is cheaper than re-arming it per call. */
void
loop_disarm(struct loop *loop, struct timer *timer)
{
    timers_disarm(&loop->timers, timer);
}

void
loop_want_flush(struct loop *loop, struct output *output)
{
    if (output->is_listed)
        return;
    output->is_listed = true;
    output->next = loop->outputs;
    loop->outputs = output;
}

void
loop_forget_output(struct loop *loop, struct output *output)
{
    struct output **place = &loop->outputs;
    while (output->is_listed && *place && *place != output)
        place = &(*place)->next;
    if (output->is_listed && *place)
        *place = output->next;
    output->is_listed = true; /* so that it is never registered again */
}

static void
flush_outputs(struct loop *loop)
{
    while (loop->outputs) {
        struct output *output = loop->outputs;
        loop->outputs = output->next;
        output->is_listed = false;
        output->flush(output);
    }
    loop->unflushed = 0;
}

/*
 * A turn handles the calls of all connections that have sent any. Flushing within it lets the peers
 * of the first calls go on, and the memory of an answered call is still in the cache for the next
 * one. A few calls are not worth a system call of their own.
 */
void
loop_flush_early(struct loop *loop)
{
    if (loop->unflushed >= EARLY_FLUSH_HEADERS)
        flush_outputs(loop);
}

/*
 * Runs before the loop sleeps: runs the inbox and writes everything that this turn produced, log
 * lines last. The inbox comes after the connections: posting before that wakes nobody.
 */
static void
end_turn(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;
    unsigned rounds = 0;
    do {
        hand_over_batch(loop);
        flush_outputs(loop);
    } while ((run_inbox(loop) || loop->batch) && ++rounds < INBOX_ROUNDS);
    if (rounds == INBOX_ROUNDS)
        uv_async_send(&loop->wake); /* read the sockets first */
    log_flush(loop->log);
    if (loop->stop)
        uv_stop(&loop->uv);
}

static void
close_handles(struct loop *loop)
{
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->end_of_turn, NULL);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_close((uv_handle_t *)&loop->relief, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    log_flush(loop->log);
}

/* ---- a lone call, run by the loop's own thread ---- */

/*
 * Returns false if the other thread runs the loop now. Tasks that the work posts run at the end of
 * the next turn, which begins at once.
 */
static bool
run_work_here(struct loop *loop)
{
    struct work *work = take_batch(loop);
    flush_outputs(loop);
    loop_note_awake(loop);
    bool is_still_ours = loop_threads_run_work(&loop->threads, work);
    if (is_still_ours)
        lone_caller_note_work(&loop->lone, timers_now());
    return is_still_ours;
}

static bool
has_events(const struct loop *loop)
{
    struct pollfd events = {.fd = uv_backend_fd(&loop->uv), .events = POLLIN};
    return poll(&events, 1, 0) > 0;
}

/*
 * Sleeps or polls until there is something to do. `ran_work`: this thread has run the handler of
 * the only call, and this turn answers it.
 */
static void
run_turn(struct loop *loop, bool ran_work)
{
    bool is_free = ran_work || !loop->running_calls;
    bool polls = is_free && lone_caller_polls(&loop->lone, timers_now());
    loop->had_input = false;
    uv_run(&loop->uv, polls ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    if (loop->had_input)
        lone_caller_note_event(&loop->lone, timers_now());
    else if (polls)
        sched_yield(); /* somebody else may need this core */
}

static bool
may_run_here(struct loop *loop)
{
    return loop->batch_count == 1 && loop->batch->is_short && lone_caller_is_alone(&loop->lone) &&
           loop_threads_start_standby(&loop->threads);
}

/* See loop_threads.h. */
static bool
run_loop(void *argument)
{
    struct loop *loop = argument;
    bool runs_here = false;
    while (!loop->stop) {
        run_turn(loop, runs_here);
        runs_here = may_run_here(loop);
        if (runs_here && !run_work_here(loop))
            return false;
        if (runs_here && has_events(loop))
            lone_caller_note_company(&loop->lone);
    }
    close_handles(loop);
    return true;
}

/* Only the first of these can fail. */
static int
init_handles(struct loop *loop)
{
    int failed = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (failed)
        return failed;
    uv_prepare_init(&loop->uv, &loop->end_of_turn);
    uv_timer_init(&loop->uv, &loop->timer);
    uv_timer_init(&loop->uv, &loop->relief);
    loop->wake.data = loop->end_of_turn.data = loop->timer.data = loop->relief.data = loop;
    uv_prepare_start(&loop->end_of_turn, end_turn);
    return 0;
}

static void
free_loop(struct loop *loop)
{
    workers_free(loop->workers);
    timers_clear(&loop->timers);
    blocks_clear(&loop->blocks);
    admission_clear(&loop->admission);
    pthread_mutex_destroy(&loop->inbox_lock);
    free(loop->read_buffer);
    free(loop->write_buffer);
    free(loop);
}

static struct error *
start(struct loop *loop, const struct loop_options *options)
{
    int failed = uv_loop_init(&loop->uv);
    if (!failed) {
        failed = init_handles(loop);
        if (failed)
            uv_loop_close(&loop->uv);
    }
    if (failed)
        return error_new(CODE_RESOURCE_EXHAUSTED, "start the event loop: %s", uv_strerror(failed));
    loop->workers = workers_new(options->max_workers, options->max_queued_calls);
    struct error *error = loop_threads_open(&loop->threads, run_loop, loop);
    if (error) {
        close_handles(loop);
        uv_loop_close(&loop->uv);
    }
    return error;
}

struct error *
loop_open(const struct loop_options *options, struct loop **out)
{
    struct loop *loop = memory_zeroed(sizeof *loop);
    loop->log = options->log;
    /* Streams may last for ever: half of the threads are kept for unary calls. */
    admission_init(&loop->admission, options->max_buffered_bytes,
                   options->max_workers > 1 ? options->max_workers / 2 : 1);
    loop->inbox_last = &loop->inbox;
    loop->batch_last = &loop->batch;
    loop->trim.run = trim_heap;
    loop->read_buffer = memory_new(LOOP_READ_BYTES);
    loop->write_buffer = memory_new(LOOP_WRITE_BYTES);
    pthread_mutex_init(&loop->inbox_lock, NULL);
    struct error *error = start(loop, options);
    if (error)
        free_loop(loop);
    else
        *out = loop;
    return error;
}

static void
stop_relief(void *argument)
{
    uv_timer_stop(&((struct loop *)argument)->relief);
}

static void
request_stop(void *argument)
{
    ((struct loop *)argument)->stop = true;
}

void
loop_close(struct loop *loop)
{
    if (!loop)
        return;
    /* The timer uses the workers. Nothing restarts it, because nothing submits work any more. */
    loop_run(loop, stop_relief, loop);
    workers_free(STEAL(loop->workers));
    loop_run(loop, request_stop, loop);
    loop_threads_close(&loop->threads);
    uv_loop_close(&loop->uv);
    free_loop(loop);
}
