/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker pool: see workers.h.
 *
 * DESIGN. One mutex, one queue, one semaphore. workers_submit wakes one thread, and a thread that
 * leaves work in the queue wakes the next. So the loop pays for one wake-up per batch, and a single
 * thread can finish a batch of short work without waking others. (Rejected: a new thread whenever
 * none is idle, because a burst of a hundred short calls would start a hundred threads for a few
 * microseconds of work each.) Instead the loop checks every millisecond whether the queue moves. If
 * not, the threads are blocked, and their number is doubled.
 */
#include "rpc/loop/workers.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#define IDLE_SECONDS 5
#define STACK_BYTES (256u * 1024)

struct workers {
    pthread_mutex_t lock;
    sem_t wake_ups; /* idle threads wait here; a condition would make each take the lock */
    pthread_cond_t thread_ended;
    struct work *first;
    struct work **last;
    atomic_size_t queued;
    size_t max_queued;
    size_t taken; /* items that threads have taken so far */
    size_t taken_when_last_seen;
    unsigned threads;
    unsigned idle;
    bool is_waking; /* a woken thread has not looked at the queue yet */
    unsigned min_threads;
    unsigned max_threads;
    bool stopping;
};

struct workers *
workers_new(unsigned max_threads, size_t max_queued)
{
    struct workers *workers = memory_zeroed(sizeof *workers);
    /* Held for an instant only: spinning is cheaper than sleeping. */
    pthread_mutexattr_t adaptive;
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&workers->lock, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
    sem_init(&workers->wake_ups, 0, 0);
    pthread_cond_init(&workers->thread_ended, NULL);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    workers->last = &workers->first;
    workers->max_queued = max_queued;
    workers->max_threads = max_threads;
    workers->min_threads = cores > 0 ? (unsigned)cores : 1;
    if (workers->min_threads > max_threads)
        workers->min_threads = max_threads;
    return workers;
}

static size_t
count_queued(const struct workers *workers)
{
    return atomic_load_explicit(&workers->queued, memory_order_relaxed);
}

/* Lock held. If it returns true the caller posts wake_ups after releasing the lock. */
static bool
must_wake(struct workers *workers)
{
    bool must = workers->first && workers->idle && !workers->is_waking;
    workers->is_waking |= must;
    return must;
}

static struct work *
pop(struct workers *workers)
{
    struct work *work = workers->first;
    workers->first = work->next;
    if (!workers->first)
        workers->last = &workers->first;
    atomic_fetch_sub_explicit(&workers->queued, 1, memory_order_relaxed);
    workers->taken++;
    return work;
}

/* Returns true on timeout. */
static bool
sleep_until_woken(struct workers *workers, bool may_end)
{
    struct timespec until;
    if (!may_end) {
        sem_wait(&workers->wake_ups);
        return false;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    return sem_clockwait(&workers->wake_ups, CLOCK_MONOTONIC, &until) && errno == ETIMEDOUT;
}

/* Lock held. Returns false if the thread must end: idle for too long, or the pool stops. */
static bool
wait_for_work(struct workers *workers)
{
    workers->idle++;
    bool timed_out = false;
    while (!workers->first && !workers->stopping && !timed_out) {
        bool may_end = workers->threads > workers->min_threads;
        pthread_mutex_unlock(&workers->lock);
        timed_out = sleep_until_woken(workers, may_end);
        pthread_mutex_lock(&workers->lock);
        workers->is_waking = false;
    }
    workers->idle--;
    return workers->first || (!workers->stopping && workers->threads <= workers->min_threads);
}

static void *
thread_main(void *argument)
{
    struct workers *workers = argument;
    pthread_mutex_lock(&workers->lock);
    while (workers->first || wait_for_work(workers)) {
        if (!workers->first)
            continue;
        struct work *work = pop(workers);
        bool wake = must_wake(workers);
        pthread_mutex_unlock(&workers->lock);
        if (wake)
            sem_post(&workers->wake_ups);
        work->run(work);
        pthread_mutex_lock(&workers->lock);
    }
    workers->threads--;
    pthread_cond_broadcast(&workers->thread_ended);
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* Lock held. If no thread can be started, the work waits for the others or for workers_relieve. */
static void
start_thread(struct workers *workers)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&thread, &attributes, thread_main, workers) == 0)
        workers->threads++;
    pthread_attr_destroy(&attributes);
}

size_t
workers_room(const struct workers *workers)
{
    size_t queued = count_queued(workers);
    return queued < workers->max_queued ? workers->max_queued - queued : 0;
}

bool
workers_submit(struct workers *workers, struct work *first, size_t count)
{
    struct work *last = first;
    while (last->next)
        last = last->next;
    pthread_mutex_lock(&workers->lock);
    *workers->last = first;
    workers->last = &last->next;
    size_t queued =
        count + atomic_fetch_add_explicit(&workers->queued, count, memory_order_relaxed);
    for (size_t i = 0; i < count && queued > workers->idle; i++)
        if (workers->threads < workers->min_threads)
            start_thread(workers);
    bool behind = queued > workers->idle;
    bool wake = must_wake(workers);
    pthread_mutex_unlock(&workers->lock);
    if (wake)
        sem_post(&workers->wake_ups);
    return behind;
}

bool
workers_relieve(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    size_t queued = count_queued(workers);
    if (queued && workers->taken == workers->taken_when_last_seen) {
        size_t as_many_again = workers->threads ? workers->threads : 1;
        size_t wanted = queued < as_many_again ? queued : as_many_again;
        for (; wanted && workers->threads < workers->max_threads; wanted--)
            start_thread(workers);
    }
    workers->taken_when_last_seen = workers->taken;
    pthread_mutex_unlock(&workers->lock);
    return queued > 0;
}

void
workers_free(struct workers *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    for (unsigned i = 0; i < workers->threads; i++)
        sem_post(&workers->wake_ups);
    while (workers->threads)
        pthread_cond_wait(&workers->thread_ended, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
    while (workers->first) { /* no thread could be started */
        struct work *work = pop(workers);
        work->run(work);
    }
    sem_destroy(&workers->wake_ups);
    pthread_cond_destroy(&workers->thread_ended);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}
