/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated work: see ticker.h. */
#include "volumes/ticker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

struct ticker {
    void (*work)(void *context);
    void *context;
    uint32_t pause_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_woken;
    bool ends;
};

static bool
wait_a_while(struct ticker *ticker)
{
    struct timespec until = clock_after_ms(ticker->pause_ms);
    int result = 0;
    pthread_mutex_lock(&ticker->lock);
    while (!ticker->ends && !ticker->is_woken && result == 0)
        result = pthread_cond_timedwait(&ticker->changed, &ticker->lock, &until);
    ticker->is_woken = false;
    bool ends = ticker->ends;
    pthread_mutex_unlock(&ticker->lock);
    return !ends;
}

static void *
run(void *context)
{
    struct ticker *ticker = context;
    do
        ticker->work(ticker->context);
    while (wait_a_while(ticker));
    return NULL;
}

struct ticker *
ticker_start(void (*work)(void *context), void *context, uint32_t pause_ms)
{
    struct ticker *ticker = memory_zeroed(sizeof *ticker);
    pthread_condattr_t clock;
    ticker->work = work;
    ticker->context = context;
    ticker->pause_ms = pause_ms;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&ticker->lock, NULL);
    pthread_cond_init(&ticker->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&ticker->thread, NULL, run, ticker) != 0)
        memory_exhausted();
    return ticker;
}

static void
set(struct ticker *ticker, bool *flag)
{
    pthread_mutex_lock(&ticker->lock);
    *flag = true;
    pthread_cond_signal(&ticker->changed);
    pthread_mutex_unlock(&ticker->lock);
}

void
ticker_wake(struct ticker *ticker)
{
    set(ticker, &ticker->is_woken);
}

void
ticker_stop(struct ticker *ticker)
{
    if (!ticker)
        return;
    set(ticker, &ticker->ends);
    pthread_join(ticker->thread, NULL);
    pthread_cond_destroy(&ticker->changed);
    pthread_mutex_destroy(&ticker->lock);
    free(ticker);
}
