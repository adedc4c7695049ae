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
#define CALLS_IN_COMPANY 16u
#define EARLY_FLUSH_HEADERS 8u
#define TRIM_PAD_BYTES (64u << 10)

/* False: there is nothing, and from now on whoever posts wakes the loop. */
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

/* The end of the turn runs the inbox: to be awake is enough. */
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
    /* Under the lock: once the inbox has been seen empty the loop may end and the handle be gone. */
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
    baton_give_up();
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
    if (loop->pile_count >= workers_room(loop->workers))
        return false;
    work->next = NULL;
    *loop->pile_last = work;
    loop->pile_last = &work->next;
    loop->pile_count++;
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
    loop->trim.run = trim_heap;
    if (atomic_load(&loop->is_trimming) || !loop_submit_work(loop, &loop->trim))
        return false;
    atomic_store(&loop->is_trimming, true);
    loop_note_work_done(loop); /* nobody waits for it */
    return true;
}

static struct work *
take_pile(struct loop *loop)
{
    loop->pile_last = &loop->pile;
    loop->pile_count = 0;
    return STEAL(loop->pile);
}

static void
hand_over_pile(struct loop *loop)
{
    if (!loop->pile)
        return;
    size_t count = loop->pile_count;
    bool behind = workers_submit(loop->workers, take_pile(loop), count);
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
    if (timer->place == 1)
        schedule_timers(loop);
}

/* The libuv timer is left as it is: firing with nothing due costs less than re-arming it for each call. */
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
    output->is_listed = true; /* so that nothing lists it again */
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
 * A turn takes as long as the calls of all connections that have sent some: those who wait for the first of them, a server behind a proxy or a client, need not sleep
 * so long. And what an answered call has used is still in the cache for the next one. Fewer calls are not worth a system call of their own.
 */
void
loop_flush_early(struct loop *loop)
{
    if (loop->unflushed >= EARLY_FLUSH_HEADERS)
        flush_outputs(loop);
}

/*
 * Runs before the loop waits: what other threads have posted is done, and all that this turn wanted to say goes out, the lines of the log last. The inbox is looked at
 * after the connections: who posts before that need not wake anybody.
 */
static void
end_turn(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;
    unsigned rounds = 0;
    do {
        hand_over_pile(loop);
        flush_outputs(loop);
    } while ((run_inbox(loop) || loop->pile) && ++rounds < INBOX_ROUNDS);
    if (rounds == INBOX_ROUNDS)
        uv_async_send(&loop->wake); /* the sockets have their turn first */
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
 * Is this turn's call alone, and have the last ones been? Callers that come side by side are served side by side, by the workers: their commits
 * are one, and none waits for another's handler. `has_waited`: while a handler ran here. Streams do not count, most of the time they wait
 * for something.
 */
static bool
is_lone(struct loop *loop, bool has_waited)
{
    size_t streams = atomic_load_explicit(&loop->admission.streams.used, memory_order_relaxed);
    bool in_company =
        has_waited || loop->pile_count > 1 || loop->running_calls > streams + loop->pile_count;
    if (in_company)
        loop->company = CALLS_IN_COMPANY;
    else if (loop->company)
        loop->company--;
    return !loop->company;
}

/* False: the deputy has the loop now. What the work posts is run, and written, at the end of the next turn, which begins at once. */
static bool
run_lone_work(struct loop *loop)
{
    struct work *work = take_pile(loop);
    flush_outputs(loop);
    loop_note_awake(loop);
    bool has_baton = baton_run_work(&loop->baton, work);
    if (has_baton)
        lookout_note_work(&loop->lookout, timers_now());
    return has_baton;
}

static bool
has_events(const struct loop *loop)
{
    struct pollfd events = {.fd = uv_backend_fd(&loop->uv), .events = POLLIN};
    return poll(&events, 1, 0) > 0;
}

/*
 * Sleeps until something comes, or looks for it: only for the sake of one call at a time. `has_served`: the one call under way has been run here, and
 * has but to be answered, by this turn.
 */
static void
run_turn(struct loop *loop, bool has_served)
{
    bool is_free = has_served || !loop->running_calls;
    bool looks = is_free && lookout_is_on(&loop->lookout, timers_now());
    loop->has_heard = false;
    uv_run(&loop->uv, looks ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    if (loop->has_heard)
        lookout_note_event(&loop->lookout, timers_now());
    else if (looks)
        sched_yield(); /* whoever can use this core has it */
}

/* Runs the loop: see baton.h. */
static bool
carry(void *argument)
{
    struct loop *loop = argument;
    bool runs_here = false, has_waited = false;
    while (!loop->stop) {
        run_turn(loop, runs_here);
        runs_here = loop->pile && is_lone(loop, has_waited) && loop->pile->is_short &&
                    baton_find_deputy(&loop->baton);
        if (runs_here && !run_lone_work(loop))
            return false;
        has_waited = runs_here && has_events(loop);
    }
    close_handles(loop);
    return true;
}

/* Only the first takes something from the system. */
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
    struct error *error = baton_open(&loop->baton, carry, loop);
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
    /* Streams may last for ever: half of the threads are for calls that do not. */
    admission_init(&loop->admission, options->max_buffered_bytes,
                   options->max_workers > 1 ? options->max_workers / 2 : 1);
    loop->inbox_last = &loop->inbox;
    loop->pile_last = &loop->pile;
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
    /* The timer uses the workers; nothing starts it again, because nothing is left that submits work. */
    loop_run(loop, stop_relief, loop);
    workers_free(STEAL(loop->workers));
    loop_run(loop, request_stop, loop);
    baton_close(&loop->baton);
    uv_loop_close(&loop->uv);
    free_loop(loop);
}
