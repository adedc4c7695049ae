/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker pool: see workers.h.
 *
 * DESIGN. One mutex, one queue, one condition. Growing on every submit that finds no idle thread was rejected: a burst
 * of a hundred short calls in one turn of the loop would start a hundred threads for a few microseconds of work each. Instead the
 * loop looks once per millisecond whether the queue stands still; then the threads are blocked, and as many again are started.
 */
#include "rpc/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#define IDLE_SECONDS 5
#define STACK_BYTES (256u * 1024)

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t work_waits;
    pthread_cond_t thread_ended;
    struct work *first;
    struct work **last;
    size_t queued;
    size_t max_queued;
    size_t taken; /* pieces of work that threads have taken so far */
    size_t taken_when_last_seen;
    unsigned threads;
    unsigned idle;
    unsigned min_threads;
    unsigned max_threads;
    bool stopping;
};

struct workers *
workers_new(unsigned max_threads, size_t max_queued)
{
    struct workers *workers = memory_zeroed(sizeof *workers);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work_waits, &monotonic);
    pthread_cond_init(&workers->thread_ended, NULL);
    pthread_condattr_destroy(&monotonic);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    workers->last = &workers->first;
    workers->max_queued = max_queued;
    workers->max_threads = max_threads;
    workers->min_threads = cores > 0 ? (unsigned)cores : 1;
    if (workers->min_threads > max_threads)
        workers->min_threads = max_threads;
    return workers;
}

static struct work *
pop(struct workers *workers)
{
    struct work *work = workers->first;
    workers->first = work->next;
    if (!workers->first)
        workers->last = &workers->first;
    workers->queued--;
    workers->taken++;
    return work;
}

/* False: nothing came for so long that the thread may end. With the lock held. */
static bool
wait_for_work(struct workers *workers)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    workers->idle++;
    int timed_out = 0;
    while (!workers->first && !workers->stopping && !timed_out)
        timed_out = pthread_cond_timedwait(&workers->work_waits, &workers->lock, &until);
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
        pthread_mutex_unlock(&workers->lock);
        work->run(work);
        pthread_mutex_lock(&workers->lock);
    }
    workers->threads--;
    pthread_cond_broadcast(&workers->thread_ended);
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* With the lock held. A thread that cannot be started is no error while others run: the work waits for them. */
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
    else if (workers->threads == 0)
        memory_exhausted();
    pthread_attr_destroy(&attributes);
}

bool
workers_submit(struct workers *workers, struct work *work)
{
    pthread_mutex_lock(&workers->lock);
    if (workers->queued >= workers->max_queued) {
        pthread_mutex_unlock(&workers->lock);
        return false;
    }
    work->next = NULL;
    *workers->last = work;
    workers->last = &work->next;
    workers->queued++;
    bool wake = workers->idle > 0 && workers->queued <= workers->idle;
    if (workers->queued > workers->idle && workers->threads < workers->min_threads)
        start_thread(workers);
    pthread_mutex_unlock(&workers->lock);
    if (wake)
        pthread_cond_signal(&workers->work_waits);
    return true;
}

bool
workers_relieve(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    if (workers->queued && workers->taken == workers->taken_when_last_seen) {
        size_t wanted = workers->queued < workers->threads ? workers->queued : workers->threads;
        for (; wanted && workers->threads < workers->max_threads; wanted--)
            start_thread(workers);
    }
    workers->taken_when_last_seen = workers->taken;
    bool behind = workers->queued > 0;
    pthread_mutex_unlock(&workers->lock);
    return behind;
}

bool
workers_are_behind(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    bool behind = workers->queued > workers->idle;
    pthread_mutex_unlock(&workers->lock);
    return behind;
}

void
workers_free(struct workers *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->work_waits);
    while (workers->threads)
        pthread_cond_wait(&workers->thread_ended, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
    pthread_cond_destroy(&workers->work_waits);
    pthread_cond_destroy(&workers->thread_ended);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}
