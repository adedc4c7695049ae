/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of operations: see ops.h.
 *
 * max_running operations work at the same time. One that only waits for something outside, such as
 * a node that is lost, gives its turn to another: otherwise a few of them would hold up all. It
 * keeps its thread. It goes on before a queued one begins if it has made progress lately; otherwise
 * the queued one begins first, because many that wait for one dead server would never leave a turn
 * unused. One that pauses goes on at once, however many work then. The limit of unfinished
 * operations is that of threads.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/ops_internal.h"

#define STACK_BYTES (256u * 1024)
#define WAITING_NS INT64_C(5000000000) /* without progress: it counts as waiting */

static unsigned
most_threads(const struct ops *ops)
{
    return ops->options.max_running + OPS_MAX_UNFINISHED;
}

void
ops_open_threads(struct ops *ops)
{
    ops->threads = memory_zeroed(most_threads(ops) * sizeof *ops->threads);
}

void
ops_join_threads(struct ops *ops)
{
    for (unsigned i = 0; i < ops->thread_count; i++)
        pthread_join(ops->threads[i], NULL);
    free(ops->threads);
}

static void *work(void *context);

/* NULL: there is none. */
static struct operation *
first_waiting(const struct ops *ops, bool in_background)
{
    struct operation *operation = ops->unfinished;
    while (operation &&
           (operation->phase != PHASE_WAITING || operation->record.in_background != in_background))
        operation = operation->next;
    return operation;
}

/*
 * Those in the background leave one place free, so that a caller who waits never waits for all of
 * them. With the lock held.
 */
static bool
has_place(const struct ops *ops, bool in_background)
{
    unsigned max = ops->options.max_running;
    return ops->working_count < (in_background && max > 1 ? max - 1 : max);
}

/* Takes the next operation from the queue; NULL if there is none. With the lock held. */
static struct operation *
take_next(struct ops *ops)
{
    if (!has_place(ops, false) || ops->returning_count)
        return NULL;
    struct operation *operation = first_waiting(ops, false);
    if (!operation && has_place(ops, true))
        operation = first_waiting(ops, true);
    if (!operation)
        return NULL;
    operation->phase = PHASE_WORKING;
    operation->record.phase = OPERATION_PHASE(WORKING);
    operation->record.advanced_ns = clock_unix_ns();
    return operation;
}

static unsigned
count_waiting(const struct ops *ops)
{
    unsigned count = 0;
    for (const struct operation *o = ops->unfinished; o; o = o->next)
        count += o->phase == PHASE_WAITING;
    return count;
}

void
ops_wake_thread(struct ops *ops)
{
    pthread_attr_t attributes;
    pthread_cond_broadcast(&ops->work_waits);
    if (ops->is_stopped || ops->idle_count >= count_waiting(ops) ||
        ops->thread_count - ops->resting_count >= ops->options.max_running ||
        ops->thread_count == most_threads(ops))
        return;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&ops->threads[ops->thread_count], &attributes, work, ops) == 0)
        ops->thread_count++;
    else
        log_error(ops->options.log,
                  "cannot start a thread for an operation; it waits for another thread");
    pthread_attr_destroy(&attributes);
}

/* ---- resting ---- */

static bool
is_over(const struct operation *operation)
{
    return operation->record.cancel_asked || operation->ops->is_stopped;
}

/* With the lock held. */
static void
give_turn(struct ops *ops)
{
    ops->working_count--;
    ops->resting_count++;
    ops_wake_thread(ops);
}

static bool
only_waits(const struct operation *operation)
{
    return clock_unix_ns() - operation->record.advanced_ns > WAITING_NS;
}

/* Without a thread that can take it, a queued operation is not waited for. With the lock held. */
static bool
may_return(const struct operation *operation, bool gives_way)
{
    const struct ops *ops = operation->ops;
    bool can_begin = ops->idle_count + ops->working_count > 0 && first_waiting(ops, false);
    return has_place(ops, operation->record.in_background) && !(gives_way && can_begin);
}

/* With the lock held. What is cancelled has little left to do, and does not wait. */
static void
take_turn(struct operation *operation, bool waits)
{
    struct ops *ops = operation->ops;
    bool gives_way = only_waits(operation);
    ops->returning_count += !gives_way;
    while (waits && !may_return(operation, gives_way) && !is_over(operation))
        pthread_cond_wait(&ops->work_waits, &ops->lock);
    ops->returning_count -= !gives_way;
    ops->resting_count--;
    ops->working_count++;
    pthread_cond_broadcast(&ops->work_waits);
}

static void
give_turn_for(struct operation *operation, uint32_t ms, bool waits)
{
    struct ops *ops = operation->ops;
    struct timespec until = clock_after_ms(ms);
    int timed_out = 0;
    pthread_mutex_lock(&ops->lock);
    if (only_waits(operation))
        operation->record.phase = OPERATION_PHASE(WAITING); /* until it makes progress again */
    give_turn(ops);
    while (!is_over(operation) && !timed_out)
        timed_out = pthread_cond_timedwait(&ops->changed, &ops->lock, &until);
    take_turn(operation, waits);
    pthread_mutex_unlock(&ops->lock);
}

static void
rest(void *context, uint32_t ms)
{
    give_turn_for(context, ms, true);
}

static void
pause_shortly(void *context, uint32_t ms)
{
    give_turn_for(context, ms, false);
}

/* ---- working ---- */

static void *
work(void *context)
{
    struct ops *ops = context;
    pthread_mutex_lock(&ops->lock);
    while (!ops->is_stopped) {
        struct operation *operation = take_next(ops);
        if (!operation) {
            ops->idle_count++;
            pthread_cond_wait(&ops->work_waits, &ops->lock);
            ops->idle_count--;
            continue;
        }
        ops->working_count++;
        pthread_mutex_unlock(&ops->lock);
        operation_run(operation, rest, pause_shortly);
        pthread_mutex_lock(&ops->lock);
        ops->working_count--;
        pthread_cond_broadcast(&ops->work_waits);
    }
    pthread_mutex_unlock(&ops->lock);
    return NULL;
}
