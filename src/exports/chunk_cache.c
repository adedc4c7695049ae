/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks read ahead: see chunk_cache.h.
 *
 * A slot is free, being loaded, or ready; a ready one without users is replaced when it was used
 * longest ago. Threads load what is expected as long as there are slots; whoever needs a chunk that
 * nobody loads does so itself. Slots for readers are kept apart: read-ahead takes at most
 * READ_AHEAD of them.
 */
#include "exports/chunk_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "repository/patience.h"

#define THREADS 16u
#define READ_AHEAD (CHUNK_CACHE_SLOTS - 6) /* the rest is for those who wait for a chunk */
#define USUAL_BYTES (2u << 20) /* of a slot; the memory of larger chunks is given back */

enum state { FREE, LOADING, READY };

struct slot {
    enum state state;
    struct repository_id id;
    uint8_t *bytes;
    size_t size;
    unsigned users;
    uint64_t used_at;
    bool is_expected; /* read ahead, and not asked for yet */
};

struct chunk_cache {
    struct repository *repository;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[CHUNK_CACHE_SLOTS];
    const struct repository_id *expected;
    size_t expected_count, expected_next;
    size_t ahead; /* slots with chunks that were read ahead and not asked for */
    uint64_t uses;
    bool is_closing;
    pthread_t threads[THREADS];
    size_t thread_count;
};

/* ---- with the lock held ---- */

static struct slot *
find_slot(struct chunk_cache *cache, const struct repository_id *id)
{
    for (size_t i = 0; i < CHUNK_CACHE_SLOTS; i++)
        if (cache->slots[i].state != FREE && !memcmp(&cache->slots[i].id, id, sizeof *id))
            return &cache->slots[i];
    return NULL;
}

/* A free slot, or the one that was used longest ago; NULL if all are in use. */
static struct slot *
choose_slot(struct chunk_cache *cache)
{
    struct slot *oldest = NULL;
    for (size_t i = 0; i < CHUNK_CACHE_SLOTS; i++) {
        struct slot *slot = &cache->slots[i];
        if (slot->state == FREE)
            return slot;
        if (slot->state == READY && !slot->users && !slot->is_expected &&
            (!oldest || slot->used_at < oldest->used_at))
            oldest = slot;
    }
    return oldest;
}

static void
begin_loading(struct slot *slot, const struct repository_id *id, bool is_expected)
{
    if (!slot->bytes)
        slot->bytes = memory_map(REPOSITORY_CHUNK_MAX);
    else if (slot->size > USUAL_BYTES)
        madvise(slot->bytes, REPOSITORY_CHUNK_MAX, MADV_DONTNEED);
    slot->state = LOADING;
    slot->id = *id;
    slot->is_expected = is_expected;
    slot->users = 0;
}

/* Gives up the lock while it reads. */
static struct error *
load(struct chunk_cache *cache, struct slot *slot)
{
    struct repository_id id = slot->id;
    pthread_mutex_unlock(&cache->lock);
    struct error *error = repository_read(cache->repository, &id, slot->bytes, &slot->size);
    pthread_mutex_lock(&cache->lock);
    slot->state = error ? FREE : READY;
    slot->used_at = ++cache->uses;
    pthread_cond_broadcast(&cache->changed);
    return error;
}

/* ---- reading ahead ---- */

/* The next chunk that nobody has or loads; NULL if there is none, or no room. */
static struct slot *
choose_expected(struct chunk_cache *cache)
{
    while (cache->expected_next < cache->expected_count) {
        const struct repository_id *id = &cache->expected[cache->expected_next];
        if (find_slot(cache, id)) {
            cache->expected_next++;
            continue;
        }
        struct slot *slot = cache->ahead < READ_AHEAD ? choose_slot(cache) : NULL;
        if (slot) {
            cache->expected_next++;
            begin_loading(slot, id, true);
            cache->ahead++;
        }
        return slot;
    }
    return NULL;
}

/* An error is found again by who needs the chunk. */
static void *
read_ahead(void *context)
{
    struct chunk_cache *cache = context;
    pthread_mutex_lock(&cache->lock);
    while (!cache->is_closing) {
        struct slot *slot = choose_expected(cache);
        if (!slot) {
            pthread_cond_wait(&cache->changed, &cache->lock);
            continue;
        }
        struct error *error AUTO(error_cleanup) = load(cache, slot);
        if (error && slot->is_expected) {
            slot->is_expected = false;
            cache->ahead--;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return NULL;
}

static void
forget_expected(struct chunk_cache *cache)
{
    for (size_t i = 0; i < CHUNK_CACHE_SLOTS; i++)
        if (cache->slots[i].is_expected) {
            cache->slots[i].is_expected = false;
            cache->ahead--;
        }
}

void
chunk_cache_expect(struct chunk_cache *cache, const struct repository_id *ids, size_t count)
{
    pthread_mutex_lock(&cache->lock);
    forget_expected(cache);
    cache->expected = ids;
    cache->expected_count = count;
    cache->expected_next = 0;
    pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- asking ---- */

static struct slot *
use_slot(struct chunk_cache *cache, struct slot *slot)
{
    if (slot->is_expected) {
        slot->is_expected = false;
        cache->ahead--;
        pthread_cond_broadcast(&cache->changed); /* there is room to read ahead */
    }
    slot->users++;
    slot->used_at = ++cache->uses;
    return slot;
}

static struct error *
find_or_load(struct chunk_cache *cache, const struct repository_id *id, struct slot **out)
{
    for (;;) {
        struct slot *slot = find_slot(cache, id);
        if (slot && slot->state == READY) {
            *out = use_slot(cache, slot);
            return NULL;
        }
        struct slot *room = slot ? NULL : choose_slot(cache);
        if (!room) {
            pthread_cond_wait(&cache->changed, &cache->lock);
            continue;
        }
        begin_loading(room, id, false);
        struct error *error = load(cache, room);
        if (error)
            return error;
    }
}

struct error *
chunk_cache_get(struct chunk_cache *cache, const struct repository_id *id, const uint8_t **bytes,
                size_t *size)
{
    struct slot *slot = NULL;
    pthread_mutex_lock(&cache->lock);
    struct error *error = find_or_load(cache, id, &slot);
    if (!error) {
        *bytes = slot->bytes;
        *size = slot->size;
    }
    pthread_mutex_unlock(&cache->lock);
    return error;
}

void
chunk_cache_release(struct chunk_cache *cache, const uint8_t *bytes)
{
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < CHUNK_CACHE_SLOTS; i++)
        if (cache->slots[i].bytes == bytes && --cache->slots[i].users == 0)
            pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- life ---- */

struct error *
chunk_cache_open(struct repository *repository, struct chunk_cache **out)
{
    struct chunk_cache *cache = memory_zeroed(sizeof *cache);
    cache->repository = repository;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    *out = cache;
    for (; cache->thread_count < THREADS; cache->thread_count++) {
        int errnum = patience_start_thread(&cache->threads[cache->thread_count], read_ahead, cache);
        if (errnum)
            return error_from_errno(errnum, "start a thread");
    }
    return NULL;
}

void
chunk_cache_close(struct chunk_cache *cache)
{
    if (!cache)
        return;
    pthread_mutex_lock(&cache->lock);
    cache->is_closing = true;
    pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
    for (size_t i = 0; i < cache->thread_count; i++)
        pthread_join(cache->threads[i], NULL);
    for (size_t i = 0; i < CHUNK_CACHE_SLOTS; i++)
        if (cache->slots[i].bytes)
            memory_unmap(cache->slots[i].bytes, REPOSITORY_CHUNK_MAX);
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->changed);
    free(cache);
}
