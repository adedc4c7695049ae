/* SPDX-License-Identifier: Apache-2.0 */
/* One key per name: see keys.h. A handful are held at a time, so a list will do. */
#include "volumes/keys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

struct key {
    struct keys *keys;
    struct key *next;
    const char *kind;
    bool is_shared;
    char name[];
};

void
keys_init(struct keys *keys)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&keys->lock, NULL);
    pthread_cond_init(&keys->released, &clock);
    pthread_condattr_destroy(&clock);
    keys->held = NULL;
    keys->releases = 0;
}

void
keys_clear(struct keys *keys)
{
    pthread_cond_destroy(&keys->released);
    pthread_mutex_destroy(&keys->lock);
}

/* With the lock held. */
static bool
is_held(const struct keys *keys, const char *kind, const char *name, bool may_be_shared)
{
    for (const struct key *key = keys->held; key; key = key->next)
        if (strcmp(key->kind, kind) == 0 && strcmp(key->name, name) == 0 &&
            !(key->is_shared && may_be_shared))
            return true;
    return false;
}

static struct error *
take(struct keys *keys, const char *kind, const char *name, bool is_shared, unsigned timeout_ms,
     struct key **out)
{
    struct timespec end = clock_after_ms(timeout_ms);
    struct key *key = memory_new(sizeof *key + strlen(name) + 1);
    key->keys = keys;
    key->kind = kind;
    key->is_shared = is_shared;
    memcpy(key->name, name, strlen(name) + 1);
    pthread_mutex_lock(&keys->lock);
    bool busy = is_held(keys, kind, name, is_shared);
    while (busy && timeout_ms && pthread_cond_timedwait(&keys->released, &keys->lock, &end) == 0)
        busy = is_held(keys, kind, name, is_shared);
    if (!busy) {
        key->next = keys->held;
        keys->held = key;
    }
    pthread_mutex_unlock(&keys->lock);
    if (busy) {
        free(key);
        return error_new(CODE_ABORTED, "another request for the %s \"%s\" is under way; try again",
                         kind, name);
    }
    *out = key;
    return NULL;
}

struct error *
keys_wait(struct keys *keys, const char *kind, const char *name, unsigned timeout_ms,
          struct key **out)
{
    return take(keys, kind, name, false, timeout_ms, out);
}

struct error *
keys_take(struct keys *keys, const char *kind, const char *name, struct key **out)
{
    return keys_wait(keys, kind, name, 0, out);
}

struct error *
keys_share(struct keys *keys, const char *kind, const char *name, struct key **out)
{
    return take(keys, kind, name, true, 0, out);
}

uint64_t
keys_count_releases(struct keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    uint64_t releases = keys->releases;
    pthread_mutex_unlock(&keys->lock);
    return releases;
}

void
keys_release(struct key **key_place)
{
    struct key *key = *key_place;
    if (!key)
        return;
    *key_place = NULL;
    pthread_mutex_lock(&key->keys->lock);
    struct key **link = &key->keys->held;
    while (*link != key)
        link = &(*link)->next;
    *link = key->next;
    key->keys->releases += !key->is_shared;
    pthread_cond_broadcast(&key->keys->released);
    pthread_mutex_unlock(&key->keys->lock);
    free(key);
}
