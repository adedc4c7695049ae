/* SPDX-License-Identifier: Apache-2.0 */
/* Several connections at the same time: see questions.h. */
#include "connections/questions.h"

#include <pthread.h>
#include <time.h>

#include "base/memory.h"

#define LONGEST_NS (UINT64_C(30) * 1000000000) /* also where the client names no deadline */
#define LOOK_NS 50000000L                      /* for a client that has given up */
#define SECOND_NS 1000000000L
#define STACK_BYTES (256u * 1024)

struct asking {
    pthread_mutex_t lock;
    pthread_cond_t one_ended;
    size_t running;
};

struct asked {
    struct question *question;
    struct asking *asking;
    struct call *call;
    pthread_t thread;
    bool has_thread;
};

/* Of one that is asked alone a little is kept back too: its answer must get home. */
uint64_t
questions_share_ns(const struct call *call, size_t rest)
{
    uint64_t left = call_time_left(call);
    uint64_t share = rest > 1 ? left / (rest + 1) : left / 4 * 3;
    return share < LONGEST_NS ? share + 1 : LONGEST_NS;
}

static void *
answer(void *argument)
{
    struct asked *asked = argument;
    struct asking *asking = asked->asking;
    asked->question->error = asked->question->ask(asked->call, asked->question->context);
    pthread_mutex_lock(&asking->lock);
    asking->running--;
    pthread_cond_signal(&asking->one_ended);
    pthread_mutex_unlock(&asking->lock);
    return NULL;
}

static void
start(struct asked *asked)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    asked->has_thread = pthread_create(&asked->thread, &attributes, answer, asked) == 0;
    pthread_attr_destroy(&attributes);
}

static struct timespec
next_look(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += LOOK_NS;
    if (time.tv_nsec >= SECOND_NS) {
        time.tv_sec++;
        time.tv_nsec -= SECOND_NS;
    }
    return time;
}

static void
wait_for_all(const struct call *call, struct asking *asking, struct asked *all, size_t count)
{
    pthread_mutex_lock(&asking->lock);
    while (asking->running) {
        struct timespec until = next_look();
        pthread_cond_clockwait(&asking->one_ended, &asking->lock, CLOCK_MONOTONIC, &until);
        for (size_t i = 0; call_is_cancelled(call) && i < count; i++)
            call_cancel_detached(all[i].call);
    }
    pthread_mutex_unlock(&asking->lock);
}

void
questions_ask(struct call *call, struct question *questions, size_t count, uint64_t share_ns)
{
    struct asking asking = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, count};
    struct asked *all = arena_zeroed(call_arena(call), count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct asked){&questions[i], &asking, call_new_part(call, share_ns)};
        start(&all[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (!all[i].has_thread) /* there are no more threads: one after the other, then */
            answer(&all[i]);
    wait_for_all(call, &asking, all, count);
    for (size_t i = 0; i < count; i++) {
        if (all[i].has_thread)
            pthread_join(all[i].thread, NULL);
        call_join_part(call, all[i].call);
    }
    pthread_cond_destroy(&asking.one_ended);
    pthread_mutex_destroy(&asking.lock);
}
