/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for the last call of a server: see drain.h. */
#include "rpc/server/drain.h"

#include <time.h>

#define NS_PER_SECOND 1000000000u

void
drain_init(struct drain *drain)
{
    *drain = (struct drain){0};
    pthread_mutex_init(&drain->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&drain->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void
drain_clear(struct drain *drain)
{
    pthread_cond_destroy(&drain->ended);
    pthread_mutex_destroy(&drain->lock);
}

/* A call may still arrive after the start: the peer may not have seen the GOAWAY yet. */
static void
update(struct drain *drain)
{
    if (!drain->is_started)
        return;
    pthread_mutex_lock(&drain->lock);
    drain->is_ended = drain->calls == 0;
    if (drain->is_ended)
        pthread_cond_broadcast(&drain->ended);
    pthread_mutex_unlock(&drain->lock);
}

void
drain_add_call(struct drain *drain)
{
    drain->calls++;
    update(drain);
}

void
drain_remove_call(struct drain *drain)
{
    drain->calls--;
    update(drain);
}

void
drain_start(struct drain *drain)
{
    drain->is_started = true;
    update(drain);
}

static struct timespec
after(uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t nanoseconds = (uint64_t)until.tv_nsec + timeout_ns % NS_PER_SECOND;
    until.tv_sec += (time_t)(timeout_ns / NS_PER_SECOND + nanoseconds / NS_PER_SECOND);
    until.tv_nsec = (long)(nanoseconds % NS_PER_SECOND);
    return until;
}

bool
drain_wait(struct drain *drain, uint64_t timeout_ns)
{
    struct timespec until = after(timeout_ns == UINT64_MAX ? 0 : timeout_ns);
    int timed_out = 0;
    pthread_mutex_lock(&drain->lock);
    while (!drain->is_ended && !timed_out)
        timed_out = timeout_ns == UINT64_MAX
                        ? pthread_cond_wait(&drain->ended, &drain->lock)
                        : pthread_cond_timedwait(&drain->ended, &drain->lock, &until);
    bool is_ended = drain->is_ended;
    pthread_mutex_unlock(&drain->lock);
    return is_ended;
}
