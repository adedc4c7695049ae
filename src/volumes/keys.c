/* SPDX-License-Identifier: Apache-2.0 */
/* One key per name: see keys.h. A handful are held at a time, so a list will do. */
#include "volumes/keys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct key {
    struct keys *keys;
    struct key *next;
    const char *kind;
    char name[];
};

void
keys_init(struct keys *keys)
{
    pthread_mutex_init(&keys->lock, NULL);
    keys->held = NULL;
}

void
keys_clear(struct keys *keys)
{
    pthread_mutex_destroy(&keys->lock);
}

/* With the lock held. */
static bool
is_held(const struct keys *keys, const char *kind, const char *name)
{
    for (const struct key *key = keys->held; key; key = key->next)
        if (strcmp(key->kind, kind) == 0 && strcmp(key->name, name) == 0)
            return true;
    return false;
}

struct error *
keys_take(struct keys *keys, const char *kind, const char *name, struct key **out)
{
    struct key *key = memory_new(sizeof *key + strlen(name) + 1);
    key->keys = keys;
    key->kind = kind;
    strcpy(key->name, name);
    pthread_mutex_lock(&keys->lock);
    bool busy = is_held(keys, kind, name);
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

void
keys_release(struct key **place)
{
    struct key *key = *place;
    if (!key)
        return;
    *place = NULL;
    pthread_mutex_lock(&key->keys->lock);
    struct key **link = &key->keys->held;
    while (*link != key)
        link = &(*link)->next;
    *link = key->next;
    pthread_mutex_unlock(&key->keys->lock);
    free(key);
}
