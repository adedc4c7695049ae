/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel calls: see parallel_calls.h. */
#include "connections/router/parallel_calls.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/memory.h"

#define LONGEST_NS (UINT64_C(30) * 1000000000) /* also if the client sets no deadline */
#define LOOK_MS 50                             /* interval of checks whether the client has gone */
#define STACK_BYTES (256u * 1024)
#define MOST_THREADS 32 /* of one run; a node that hangs occupies one */

struct running {
    struct parallel_call *parallel;
    struct call *call; /* NULL: not begun */
};

/* All calls of one run, and the threads that make them. */
struct crew {
    struct call *call;
    uint64_t share_ns;
    struct running *all;
    size_t count;
    pthread_mutex_t lock; /* of what follows, and of running.call */
    pthread_cond_t ended;
    size_t next; /* the first that has not begun */
    size_t left; /* those that have not ended */
};

/* A single call gets less than all the time, too: the answer must still reach the client. */
uint64_t
parallel_calls_share_ns(const struct call *call, size_t rest)
{
    uint64_t left = call_time_left(call);
    uint64_t share = rest > 1 ? left / (rest + 1) : left / 4 * 3;
    return share < LONGEST_NS ? share + 1 : LONGEST_NS;
}

/* The next call, if there is one. Its time begins now, and ends before the caller's. */
static struct running *
begin_next(struct crew *crew)
{
    struct running *one = NULL;
    pthread_mutex_lock(&crew->lock);
    if (crew->next < crew->count) {
        uint64_t left_ns = parallel_calls_share_ns(crew->call, 1);
        one = &crew->all[crew->next++];
        one->call = call_new_part(crew->call, crew->share_ns < left_ns ? crew->share_ns : left_ns);
    }
    pthread_mutex_unlock(&crew->lock);
    return one;
}

static void *
run_calls(void *argument)
{
    struct crew *crew = argument;
    for (struct running *one; (one = begin_next(crew));) {
        one->parallel->error = one->parallel->ask(one->call, one->parallel->context);
        pthread_mutex_lock(&crew->lock);
        crew->left--;
        pthread_cond_signal(&crew->ended);
        pthread_mutex_unlock(&crew->lock);
    }
    return NULL;
}

/* Returns the number of threads. */
static size_t
start(struct crew *crew, pthread_t *threads)
{
    pthread_attr_t attributes;
    size_t started = 0, most = crew->count < MOST_THREADS ? crew->count : MOST_THREADS;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (started < most && pthread_create(&threads[started], &attributes, run_calls, crew) == 0)
        started++;
    pthread_attr_destroy(&attributes);
    return started;
}

static void
wait_for_all(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->left) {
        struct timespec until = clock_after_ms(LOOK_MS);
        pthread_cond_clockwait(&crew->ended, &crew->lock, CLOCK_MONOTONIC, &until);
        for (size_t i = 0; call_is_cancelled(crew->call) && i < crew->next; i++)
            call_cancel_detached(crew->all[i].call);
    }
    pthread_mutex_unlock(&crew->lock);
}

void
parallel_calls_run(struct call *call, struct parallel_call *calls, size_t count, uint64_t share_ns)
{
    struct crew crew = {.call = call,
                        .share_ns = share_ns,
                        .all = arena_zeroed(call_arena(call), count * sizeof *crew.all),
                        .count = count,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .ended = PTHREAD_COND_INITIALIZER,
                        .left = count};
    pthread_t threads[MOST_THREADS];
    for (size_t i = 0; i < count; i++)
        crew.all[i].parallel = &calls[i];
    size_t started = start(&crew, threads);
    if (!started) /* no thread could be started: the calls are made here */
        run_calls(&crew);
    wait_for_all(&crew);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < count; i++)
        call_join_part(call, crew.all[i].call);
    pthread_cond_destroy(&crew.ended);
    pthread_mutex_destroy(&crew.lock);
}
