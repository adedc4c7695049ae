/* SPDX-License-Identifier: Apache-2.0 */
/* Locks by name: see name_locks.h. A list will do: only a handful are held at a time. */
#include "volumes/name_locks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

struct name_lock {
    struct name_locks *locks;
    struct name_lock *next;
    const char *kind;
    bool is_shared;
    char name[];
};

void
name_locks_init(struct name_locks *locks)
{
    pthread_condattr_t clock;
    *locks = (struct name_locks){0};
    pthread_mutex_init(&locks->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&locks->released, &clock);
    pthread_condattr_destroy(&clock);
}

void
name_locks_clear(struct name_locks *locks)
{
    pthread_cond_destroy(&locks->released);
    pthread_mutex_destroy(&locks->mutex);
}

static bool
is_held(const struct name_locks *locks, const char *kind, const char *name, bool may_be_shared)
{
    for (const struct name_lock *lock = locks->held; lock; lock = lock->next)
        if (strcmp(lock->kind, kind) == 0 && strcmp(lock->name, name) == 0 &&
            !(lock->is_shared && may_be_shared))
            return true;
    return false;
}

static struct error *
take(struct name_locks *locks, const char *kind, const char *name, bool is_shared,
     unsigned timeout_ms, struct name_lock **out)
{
    struct timespec end = clock_after_ms(timeout_ms);
    struct name_lock *lock = memory_new(sizeof *lock + strlen(name) + 1);
    lock->locks = locks;
    lock->kind = kind;
    lock->is_shared = is_shared;
    memcpy(lock->name, name, strlen(name) + 1);
    pthread_mutex_lock(&locks->mutex);
    bool busy = is_held(locks, kind, name, is_shared);
    while (busy && timeout_ms && pthread_cond_timedwait(&locks->released, &locks->mutex, &end) == 0)
        busy = is_held(locks, kind, name, is_shared);
    if (!busy) {
        lock->next = locks->held;
        locks->held = lock;
    }
    pthread_mutex_unlock(&locks->mutex);
    if (busy) {
        free(lock);
        return error_new(CODE_ABORTED, "another request for the %s \"%s\" is under way; try again",
                         kind, name);
    }
    *out = lock;
    return NULL;
}

struct error *
name_lock_wait(struct name_locks *locks, const char *kind, const char *name, unsigned timeout_ms,
               struct name_lock **out)
{
    return take(locks, kind, name, false, timeout_ms, out);
}

struct error *
name_lock_take(struct name_locks *locks, const char *kind, const char *name, struct name_lock **out)
{
    return name_lock_wait(locks, kind, name, 0, out);
}

struct error *
name_lock_share(struct name_locks *locks, const char *kind, const char *name,
                struct name_lock **out)
{
    return take(locks, kind, name, true, 0, out);
}

uint64_t
name_locks_count_releases(struct name_locks *locks)
{
    pthread_mutex_lock(&locks->mutex);
    uint64_t releases = locks->releases;
    pthread_mutex_unlock(&locks->mutex);
    return releases;
}

void
name_lock_release(struct name_lock **place)
{
    struct name_lock *lock = *place;
    if (!lock)
        return;
    struct name_locks *locks = lock->locks;
    *place = NULL;
    pthread_mutex_lock(&locks->mutex);
    struct name_lock **link = &locks->held;
    while (*link != lock)
        link = &(*link)->next;
    *link = lock->next;
    locks->releases += !lock->is_shared;
    pthread_cond_broadcast(&locks->released);
    pthread_mutex_unlock(&locks->mutex);
    free(lock);
}
