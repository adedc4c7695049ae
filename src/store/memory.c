/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that lasts as long as the process, for tests and trials. A sorted array: lookups are
 * binary searches, and inserting moves pointers, which is cheap up to some hundred thousand
 * entries.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_ops.h"

struct item {
    uint64_t revision;
    size_t value_size;
    uint8_t *value;
    char key[];
};

struct memory_store {
    struct store base; /* must be first */
    pthread_mutex_t lock;
    struct item **items;
    size_t count;
    size_t capacity;
    uint64_t revision;
};

static struct memory_store *
own(struct store *store)
{
    return (struct memory_store *)store;
}

static struct error *
memory_open(const char *place, const struct store_options *options, struct store **out)
{
    (void)options;
    if (place[0])
        return error_new(CODE_INVALID_ARGUMENT, "nothing may stand behind \"memory:\"");
    struct memory_store *store = memory_zeroed(sizeof *store);
    store->base.ops = &memory_store_ops;
    history_init(&store->base.history, 0);
    pthread_mutex_init(&store->lock, NULL);
    *out = &store->base;
    return NULL;
}

static void
free_item(struct item *item)
{
    free(item->value);
    free(item);
}

static void
memory_close(struct store *base)
{
    struct memory_store *store = own(base);
    for (size_t i = 0; i < store->count; i++)
        free_item(store->items[i]);
    free(store->items);
    history_clear(&base->history);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/*
 * The index of the first item whose key is `key` or greater. The lock is held, as in all functions
 * below.
 */
static size_t
find_place(const struct memory_store *store, const char *key)
{
    size_t low = 0, high = store->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(store->items[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool
is_at(const struct memory_store *store, size_t place, const char *key)
{
    return place < store->count && !strcmp(store->items[place]->key, key);
}

static struct store_entry
copy_item(struct arena *arena, const struct item *item)
{
    return store_copy_entry(arena, item->key, strlen(item->key), item->value, item->value_size,
                            item->revision);
}

static struct error *
memory_get(struct store *base, const char *key, struct arena *arena, struct store_entry *out)
{
    struct memory_store *store = own(base);
    pthread_mutex_lock(&store->lock);
    size_t place = find_place(store, key);
    bool found = is_at(store, place, key);
    if (found)
        *out = copy_item(arena, store->items[place]);
    pthread_mutex_unlock(&store->lock);
    return found ? NULL : store_error_not_found(key);
}

static struct item *
insert_item(struct memory_store *store, size_t place, const char *key)
{
    if (store->count == store->capacity) {
        store->capacity = store->capacity ? 2 * store->capacity : 64;
        store->items = memory_resize(store->items, store->capacity * sizeof *store->items);
    }
    size_t size = strlen(key) + 1;
    struct item *item = memory_zeroed(sizeof *item + size);
    memcpy(item->key, key, size);
    memmove(&store->items[place + 1], &store->items[place],
            (store->count - place) * sizeof *store->items);
    store->items[place] = item;
    store->count++;
    return item;
}

static void
put(struct memory_store *store, const struct store_change *change, uint64_t revision)
{
    size_t place = find_place(store, change->key);
    struct item *item = is_at(store, place, change->key) ? store->items[place]
                                                         : insert_item(store, place, change->key);
    item->value = memory_resize(item->value, change->value_size);
    if (change->value_size)
        memcpy(item->value, change->value, change->value_size);
    item->value_size = change->value_size;
    item->revision = revision;
}

/* False: there is no such item. */
static bool
remove_item(struct memory_store *store, const char *key)
{
    size_t place = find_place(store, key);
    if (!is_at(store, place, key))
        return false;
    free_item(store->items[place]);
    store->count--;
    memmove(&store->items[place], &store->items[place + 1],
            (store->count - place) * sizeof *store->items);
    return true;
}

static struct error *
check_expectations(const struct memory_store *store, const struct store_change *changes,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t place = find_place(store, changes[i].key);
        uint64_t found =
            is_at(store, place, changes[i].key) ? store->items[place]->revision : STORE_ABSENT;
        struct error *error = store_check_expected(&changes[i], found);
        if (error)
            return error;
    }
    return NULL;
}

static void
apply(struct memory_store *store, const struct store_change *changes, size_t count)
{
    struct change_list done = {0};
    store->revision++;
    for (size_t i = 0; i < count; i++) {
        if (changes[i].value)
            put(store, &changes[i], store->revision);
        else if (!remove_item(store, changes[i].key))
            continue;
        change_list_add(&done, &changes[i], store->revision);
    }
    history_publish(&store->base.history, &done);
}

static struct error *
memory_write(struct store *base, const struct store_change *changes, size_t count,
             uint64_t *revision)
{
    struct memory_store *store = own(base);
    pthread_mutex_lock(&store->lock);
    struct error *error = check_expectations(store, changes, count);
    if (!error) {
        apply(store, changes, count);
        *revision = store->revision;
    }
    pthread_mutex_unlock(&store->lock);
    return error;
}

static struct error *
memory_list(struct store *base, const char *prefix, const char *after, size_t limit,
            struct arena *arena, struct store_list *out)
{
    struct memory_store *store = own(base);
    size_t prefix_size = strlen(prefix), capacity = 0;
    pthread_mutex_lock(&store->lock);
    size_t place = find_place(store, after ? after : prefix);
    if (after && is_at(store, place, after))
        place++;
    for (; place < store->count && !out->has_more; place++) {
        if (strncmp(store->items[place]->key, prefix, prefix_size) != 0)
            break;
        out->has_more = limit && out->count == limit;
        if (!out->has_more)
            store_append_entry(arena, out, &capacity, copy_item(arena, store->items[place]));
    }
    pthread_mutex_unlock(&store->lock);
    return NULL;
}

static struct error *
memory_revision(struct store *base, uint64_t *revision)
{
    struct memory_store *store = own(base);
    pthread_mutex_lock(&store->lock);
    *revision = store->revision;
    pthread_mutex_unlock(&store->lock);
    return NULL;
}

const struct store_ops memory_store_ops = {
    .scheme = "memory",
    .form = "memory:",
    .open = memory_open,
    .close = memory_close,
    .get = memory_get,
    .write = memory_write,
    .list = memory_list,
    .revision = memory_revision,
};
