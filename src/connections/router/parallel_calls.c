/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel calls: see parallel_calls.h. */
#include "connections/router/parallel_calls.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/memory.h"

#define LONGEST_NS (UINT64_C(30) * 1000000000) /* also if the client sets no deadline */
#define LOOK_MS 50                             /* interval of checks whether the client has gone */
#define STACK_BYTES (256u * 1024)

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t left;
};

struct running {
    struct parallel_call *parallel;
    struct wait *wait;
    struct call *call;
    pthread_t thread;
    bool has_thread;
};

/* A single call gets less than all the time, too: the answer must still reach the client. */
uint64_t
parallel_calls_share_ns(const struct call *call, size_t rest)
{
    uint64_t left = call_time_left(call);
    uint64_t share = rest > 1 ? left / (rest + 1) : left / 4 * 3;
    return share < LONGEST_NS ? share + 1 : LONGEST_NS;
}

static void *
run_one(void *argument)
{
    struct running *one = argument;
    struct wait *wait = one->wait;
    one->parallel->error = one->parallel->ask(one->call, one->parallel->context);
    pthread_mutex_lock(&wait->lock);
    wait->left--;
    pthread_cond_signal(&wait->ended);
    pthread_mutex_unlock(&wait->lock);
    return NULL;
}

static void
start(struct running *one)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    one->has_thread = pthread_create(&one->thread, &attributes, run_one, one) == 0;
    pthread_attr_destroy(&attributes);
}

static void
wait_for_all(const struct call *call, struct wait *wait, struct running *all, size_t count)
{
    pthread_mutex_lock(&wait->lock);
    while (wait->left) {
        struct timespec until = clock_after_ms(LOOK_MS);
        pthread_cond_clockwait(&wait->ended, &wait->lock, CLOCK_MONOTONIC, &until);
        for (size_t i = 0; call_is_cancelled(call) && i < count; i++)
            call_cancel_detached(all[i].call);
    }
    pthread_mutex_unlock(&wait->lock);
}

void
parallel_calls_run(struct call *call, struct parallel_call *calls, size_t count, uint64_t share_ns)
{
    struct wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, count};
    struct running *all = arena_zeroed(call_arena(call), count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct running){&calls[i], &wait, call_new_part(call, share_ns)};
        start(&all[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (!all[i].has_thread) /* no thread could be started: run it here */
            run_one(&all[i]);
    wait_for_all(call, &wait, all, count);
    for (size_t i = 0; i < count; i++) {
        if (all[i].has_thread)
            pthread_join(all[i].thread, NULL);
        call_join_part(call, all[i].call);
    }
    pthread_cond_destroy(&wait.ended);
    pthread_mutex_destroy(&wait.lock);
}
