/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of an engine: see figures.h. */
#include "volumes/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/rows.h"
#include "volumes/volume.h"

#define PAGE 1000
#define LEAST_MS 10000
#define TIMES 100
#define LONGEST_MEASURING_MS 1000 /* at a time; the other volumes are unmeasured until the next */

/* States of snapshots that are not of users. */
#define BASE_STATE 2
#define REPLICA_STATE 3

#define VOLUME(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name
#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name

struct figures_cache {
    pthread_mutex_t lock;
    struct figures last;
    uint64_t until_ms;
    uint64_t least_until_ms;   /* even if something has changed */
    struct arena usages_arena; /* of the last usages */
    struct figures usages;     /* only these in it */
    uint64_t usages_until_ms;
};

struct figures_cache *
figures_cache_new(void)
{
    struct figures_cache *cache = memory_zeroed(sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    arena_init(&cache->usages_arena, NULL, 0, SIZE_MAX);
    return cache;
}

void
figures_cache_free(struct figures_cache *cache)
{
    pthread_mutex_destroy(&cache->lock);
    arena_clear(&cache->usages_arena);
    free(cache);
}

/* ---- counting ---- */

static bool
count_volume(void *context, const ProtobufCMessage *record)
{
    struct figures *figures = context;
    const volume_record *volume = (const volume_record *)record;
    unsigned state = (unsigned)volume->state;
    if (state >= FIGURES_VOLUME_STATES)
        return true;
    figures->volumes[state]++;
    if (state != VOLUME(LEFT) && state != VOLUME(GONE) && volume->size_bytes > 0)
        figures->provisioned_bytes += (uint64_t)volume->size_bytes;
    return true;
}

static bool
count_snapshot(void *context, const ProtobufCMessage *record)
{
    struct figures *figures = context;
    const snapshot_record *snapshot = (const snapshot_record *)record;
    unsigned state = snapshot->purpose == PURPOSE(BASE)      ? BASE_STATE
                     : snapshot->purpose == PURPOSE(REPLICA) ? REPLICA_STATE
                                                             : (unsigned)snapshot->state;
    if (state < FIGURES_SNAPSHOT_STATES)
        figures->snapshots[state]++;
    return true;
}

/* `take` returns whether it wants more rows. */
static struct error *
walk_rows(struct engine *engine, const struct row_kind *kind,
          bool (*take)(void *context, const ProtobufCMessage *record), void *context)
{
    char after[128] = "";
    struct error *error = NULL;
    for (bool has_more = true; has_more && !error;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        struct row_page page;
        error = rows_list(engine, kind, after[0] ? after : NULL, PAGE, &arena, &page);
        has_more = !error && page.has_more && page.count;
        for (size_t i = 0; !error && i < page.count; i++)
            if (!take(context, page.rows[i].record))
                return NULL;
        if (has_more)
            snprintf(after, sizeof after, "%s",
                     rows_handle(kind, page.rows[page.count - 1].record));
    }
    return error;
}

static uint64_t
valid_until(uint64_t start_ms, uint64_t least_ms)
{
    uint64_t now_ms = clock_now_ms();
    uint64_t valid_ms = (now_ms - start_ms) * TIMES;
    return now_ms + (valid_ms < least_ms ? least_ms : valid_ms);
}

/* With the lock held. */
static void
count_all(struct engine *engine, struct figures_cache *cache)
{
    uint64_t start_ms = clock_now_ms();
    struct figures figures = {.is_counted = true, .changes = atomic_load(&engine->changes)};
    struct error *error = walk_rows(engine, &volume_rows, count_volume, &figures);
    if (!error)
        error = walk_rows(engine, &snapshot_rows, count_snapshot, &figures);
    if (error) {
        log_warn(engine->log, "could not count volumes", LOG_TEXT("error", error->message));
        figures.is_counted = false;
    }
    error_free(error);
    cache->last = figures;
    cache->until_ms = valid_until(start_ms, LEAST_MS);
    cache->least_until_ms = valid_until(start_ms, 0);
}

/* ---- single volumes ---- */

struct measuring {
    struct engine *engine;
    struct figures_cache *cache;
    size_t most;
    uint64_t until_ms;
};

/* Volumes in the order of their age, so that the same ones are measured each time. */
static bool
measure_volume(void *context, const ProtobufCMessage *record)
{
    const struct measuring *measuring = context;
    const volume_record *volume = (const volume_record *)record;
    struct figures *usages = &measuring->cache->usages;
    struct data data = volume_data(volume);
    struct data_usage usage;
    if (volume->state != VOLUME(READY))
        return true;
    struct error *error = usage_cache_measure(
        &measuring->engine->usages, measuring->engine->backend, &data, volume->size_bytes, &usage);
    if (!error)
        usages->usages[usages->usage_count++] =
            (struct figures_usage){arena_string(&measuring->cache->usages_arena, volume->name),
                                   arena_string(&measuring->cache->usages_arena, volume->handle),
                                   usage.used_bytes, usage.total_bytes};
    error_free(error); /* it is being deleted, or the back end does not answer */
    return usages->usage_count < measuring->most && clock_now_ms() < measuring->until_ms;
}

/* With the lock held, after the volumes were counted. */
static void
measure_all(struct engine *engine, struct figures_cache *cache, size_t most)
{
    uint64_t start_ms = clock_now_ms();
    struct measuring measuring = {engine, cache, most, start_ms + LONGEST_MEASURING_MS};
    uint64_t ready = cache->last.volumes[VOLUME(READY)];
    if (measuring.most > ready)
        measuring.most = ready;
    arena_clear(&cache->usages_arena);
    cache->usages = (struct figures){.has_usages = true};
    cache->usages.usages =
        arena_alloc(&cache->usages_arena, measuring.most * sizeof *cache->usages.usages);
    struct error *error AUTO(error_cleanup) =
        measuring.most ? walk_rows(engine, &volume_rows, measure_volume, &measuring) : NULL;
    if (error)
        log_warn(engine->log, "could not measure volumes", LOG_TEXT("error", error->message));
    size_t measured = cache->usages.usage_count;
    cache->usages.unmeasured = ready > measured ? ready - measured : 0;
    cache->usages_until_ms = valid_until(start_ms, LEAST_MS);
}

/* With the lock held. */
static void
copy_usages(const struct figures *usages, struct arena *arena, struct figures *out)
{
    out->has_usages = true;
    out->unmeasured = usages->unmeasured;
    out->usage_count = usages->usage_count;
    out->usages = arena_alloc(arena, usages->usage_count * sizeof *out->usages);
    for (size_t i = 0; i < usages->usage_count; i++) {
        out->usages[i] = usages->usages[i];
        out->usages[i].name = arena_string(arena, usages->usages[i].name);
        out->usages[i].handle = arena_string(arena, usages->usages[i].handle);
    }
}

/* ---- all of it ---- */

static void
look_at_pool(struct backend *backend, struct figures_pool *out)
{
    *out = (struct figures_pool){.backend = backend->ops->name};
    struct error *error AUTO(error_cleanup) = backend_capacity(backend, &out->room);
    struct error *refusal AUTO(error_cleanup) = backend_check(backend);
    error_free(backend_devices(backend, &out->devices)); /* then there are none to tell of */
    out->has_room = !error;
    out->is_writable = !refusal;
}

void
figures_get(struct engine *engine, const struct figures_request *request, struct figures *out)
{
    struct figures_cache *cache = engine->figures;
    pthread_mutex_lock(&cache->lock);
    uint64_t now_ms = clock_now_ms();
    bool has_changed = cache->last.changes != atomic_load(&engine->changes);
    if (now_ms >= (has_changed ? cache->least_until_ms : cache->until_ms))
        count_all(engine, cache);
    *out = cache->last;
    if (request->most_usages && clock_now_ms() >= cache->usages_until_ms)
        measure_all(engine, cache, request->most_usages);
    if (request->most_usages)
        copy_usages(&cache->usages, request->arena, out);
    pthread_mutex_unlock(&cache->lock);
    for (struct backend *one = engine->backend; one && out->pool_count < FIGURES_MOST_POOLS;
         one = one->next)
        look_at_pool(one, &out->pools[out->pool_count++]);
    out->operation_count = ops_count(engine->ops, out->operations);
    out->changes = atomic_load(&engine->changes);
}

const struct backend_capacity *
figures_room(const struct figures *figures)
{
    return figures->pool_count && figures->pools[0].has_room ? &figures->pools[0].room : NULL;
}
