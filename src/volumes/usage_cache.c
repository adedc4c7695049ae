/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of measurements that take long: see usage_cache.h. */
#include "volumes/usage_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define SLOW_NS INT64_C(5000000)
#define TIMES_AS_LONG 1000
#define LONGEST_NS INT64_C(600000000000)

struct usage_memory {
    char handle[BACKEND_HANDLE_SIZE];
    int64_t size_bytes; /* of the volume when it was measured */
    int64_t until_ns;   /* an expired entry may be reused for another volume */
    struct data_usage usage;
};

void
usage_cache_clear(struct usage_cache *cache)
{
    free(cache->entries);
    *cache = (struct usage_cache){0};
}

static bool
find(struct usage_cache *cache, const struct data *data, int64_t size_bytes, struct data_usage *out)
{
    int64_t now = (int64_t)clock_now_ns();
    bool is_found = false;
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < cache->count && !is_found; i++) {
        const struct usage_memory *entry = &cache->entries[i];
        is_found = entry->until_ns > now && entry->size_bytes == size_bytes &&
                   strcmp(entry->handle, data->handle) == 0;
        if (is_found)
            *out = entry->usage;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_found;
}

/* The volume's own entry, an expired one, or a new one. */
static struct usage_memory *
find_place(struct usage_cache *cache, const char *handle, int64_t now)
{
    struct usage_memory *place = NULL;
    for (size_t i = 0; i < cache->count; i++) {
        struct usage_memory *entry = &cache->entries[i];
        if (strcmp(entry->handle, handle) == 0)
            return entry;
        if (entry->until_ns <= now)
            place = entry;
    }
    if (place)
        return place;
    cache->entries = memory_resize(cache->entries, (cache->count + 1) * sizeof *cache->entries);
    return &cache->entries[cache->count++];
}

static void
remember(struct usage_cache *cache, const struct data *data, int64_t size_bytes, int64_t took_ns,
         const struct data_usage *usage)
{
    int64_t now = (int64_t)clock_now_ns();
    int64_t good_ns = took_ns < LONGEST_NS / TIMES_AS_LONG ? took_ns * TIMES_AS_LONG : LONGEST_NS;
    pthread_mutex_lock(&cache->lock);
    struct usage_memory *place = find_place(cache, data->handle, now);
    *place =
        (struct usage_memory){.size_bytes = size_bytes, .until_ns = now + good_ns, .usage = *usage};
    memcpy(place->handle, data->handle, sizeof place->handle);
    pthread_mutex_unlock(&cache->lock);
}

struct error *
usage_cache_measure(struct usage_cache *cache, struct backend *backend, const struct data *data,
                    int64_t size_bytes, struct data_usage *out)
{
    if (find(cache, data, size_bytes, out))
        return NULL;
    int64_t begin = (int64_t)clock_now_ns();
    struct error *error = backend_usage(backend, data, out);
    int64_t took = (int64_t)clock_now_ns() - begin;
    if (!error && out->is_counted && took >= SLOW_NS)
        remember(cache, data, size_bytes, took, out);
    return error;
}
