/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of an engine: see figures.h. */
#include "volumes/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/rows.h"

#define PAGE 1000
#define LEAST_MS 10000
#define TIMES 100

/* States of snapshots that are not of users. */
#define BASE_STATE 2
#define REPLICA_STATE 3

#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name

static const char *const volume_states[FIGURES_VOLUME_STATES] = {
    "ready", "copying", NULL, "moving", "receiving", "incoming", "left", "gone"};
static const char *const snapshot_states[FIGURES_SNAPSHOT_STATES] = {"ready", "copying", "base",
                                                                     "replica"};

struct figures_cache {
    pthread_mutex_t lock;
    struct figures last;
    uint64_t until_ms;
    uint64_t least_until_ms; /* even if something has changed */
};

struct figures_cache *
figures_cache_new(void)
{
    struct figures_cache *cache = memory_zeroed(sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void
figures_cache_free(struct figures_cache *cache)
{
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* ---- counting ---- */

static void
count_volume(struct figures *figures, const ProtobufCMessage *record)
{
    const volume_record *volume = (const volume_record *)record;
    unsigned state = (unsigned)volume->state;
    if (state >= FIGURES_VOLUME_STATES)
        return;
    figures->volumes[state]++;
    if (state != SKYCAP__RECORDS__VOLUME_RECORD__STATE__LEFT &&
        state != SKYCAP__RECORDS__VOLUME_RECORD__STATE__GONE && volume->size_bytes > 0)
        figures->provisioned_bytes += (uint64_t)volume->size_bytes;
}

static void
count_snapshot(struct figures *figures, const ProtobufCMessage *record)
{
    const snapshot_record *snapshot = (const snapshot_record *)record;
    unsigned state = snapshot->purpose == PURPOSE(BASE)      ? BASE_STATE
                     : snapshot->purpose == PURPOSE(REPLICA) ? REPLICA_STATE
                                                             : (unsigned)snapshot->state;
    if (state < FIGURES_SNAPSHOT_STATES)
        figures->snapshots[state]++;
}

static struct error *
count_rows(struct engine *engine, const struct row_kind *kind,
           void (*count)(struct figures *, const ProtobufCMessage *), struct figures *out)
{
    char after[128] = "";
    struct error *error = NULL;
    for (bool has_more = true; has_more && !error;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        struct row_page page;
        error = rows_list(engine, kind, after[0] ? after : NULL, PAGE, &arena, &page);
        for (size_t i = 0; !error && i < page.count; i++)
            count(out, page.rows[i].record);
        has_more = !error && page.has_more && page.count;
        if (has_more)
            snprintf(after, sizeof after, "%s",
                     rows_handle(kind, page.rows[page.count - 1].record));
    }
    return error;
}

/* With the lock held. */
static void
count_all(struct engine *engine, struct figures_cache *cache)
{
    uint64_t start_ms = clock_now_ms();
    struct figures figures = {.is_counted = true, .changes = atomic_load(&engine->changes)};
    struct error *error = count_rows(engine, &volume_rows, count_volume, &figures);
    if (!error)
        error = count_rows(engine, &snapshot_rows, count_snapshot, &figures);
    if (error) {
        log_warn(engine->log, "could not count volumes", LOG_TEXT("error", error->message));
        figures.is_counted = false;
    }
    error_free(error);
    uint64_t now_ms = clock_now_ms();
    uint64_t valid_ms = (now_ms - start_ms) * TIMES;
    cache->last = figures;
    cache->until_ms = now_ms + (valid_ms < LEAST_MS ? LEAST_MS : valid_ms);
    cache->least_until_ms = now_ms + valid_ms;
}

void
figures_get(struct engine *engine, struct figures *out)
{
    struct figures_cache *cache = engine->figures;
    pthread_mutex_lock(&cache->lock);
    uint64_t now_ms = clock_now_ms();
    bool has_changed = cache->last.changes != atomic_load(&engine->changes);
    if (now_ms >= (has_changed ? cache->least_until_ms : cache->until_ms))
        count_all(engine, cache);
    *out = cache->last;
    pthread_mutex_unlock(&cache->lock);
    struct error *error = backend_capacity(engine->backend, &out->room);
    out->has_room = !error;
    error_free(error);
    out->operations = ops_count(engine->ops);
    out->changes = atomic_load(&engine->changes);
}

/* ---- printing ---- */

static void
print_family(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
print_room(const char *const *names, const struct figures *figures, size_t count,
           struct buffer *out)
{
    print_family(out, "skycap_pool_capacity_bytes", "gauge",
                 "Size of the file system that holds the volumes.");
    for (size_t i = 0; i < count; i++)
        if (figures[i].has_room)
            buffer_print(out, "skycap_pool_capacity_bytes{connection=\"%s\"} %" PRIu64 "\n",
                         names[i], figures[i].room.total_bytes);
    print_family(out, "skycap_pool_available_bytes", "gauge", "Of it, what can be written.");
    for (size_t i = 0; i < count; i++)
        if (figures[i].has_room)
            buffer_print(out, "skycap_pool_available_bytes{connection=\"%s\"} %" PRIu64 "\n",
                         names[i], figures[i].room.available_bytes);
    print_family(out, "skycap_provisioned_bytes", "gauge",
                 "The sizes of all volumes; they may share or not use their bytes.");
    for (size_t i = 0; i < count; i++)
        if (figures[i].is_counted)
            buffer_print(out, "skycap_provisioned_bytes{connection=\"%s\"} %" PRIu64 "\n", names[i],
                         figures[i].provisioned_bytes);
}

static void
print_states(struct buffer *out, const char *family, const char *connection,
             const char *const *states, const uint64_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (states[i])
            buffer_print(out, "%s{connection=\"%s\",state=\"%s\"} %" PRIu64 "\n", family,
                         connection, states[i], counts[i]);
}

static void
print_operations(struct buffer *out, const char *connection, const struct ops_counts *counts)
{
    static const char *const phases[] = {"queued", "working", "waiting", "stalled"};
    uint64_t values[] = {counts->queued, counts->working, counts->waiting, counts->stalled};
    print_states(out, "skycap_operations", connection, phases, values, COUNT_OF(phases));
}

static void
print_ends(struct buffer *out, const char *connection, const struct ops_counts *counts)
{
    static const char *const ends[] = {"succeeded", "failed", "cancelled"};
    uint64_t values[] = {counts->succeeded, counts->failed, counts->cancelled};
    print_states(out, "skycap_operations_total", connection, ends, values, COUNT_OF(ends));
}

void
figures_print(const char *const *names, const struct figures *figures, size_t count,
              struct buffer *out)
{
    print_room(names, figures, count, out);
    print_family(out, "skycap_volumes", "gauge", "Volumes on this node by state.");
    for (size_t i = 0; i < count; i++)
        if (figures[i].is_counted)
            print_states(out, "skycap_volumes", names[i], volume_states, figures[i].volumes,
                         FIGURES_VOLUME_STATES);
    print_family(out, "skycap_snapshots", "gauge",
                 "Snapshots on this node by state. A base is kept for the next transfer, a replica "
                 "for another node.");
    for (size_t i = 0; i < count; i++)
        if (figures[i].is_counted)
            print_states(out, "skycap_snapshots", names[i], snapshot_states, figures[i].snapshots,
                         FIGURES_SNAPSHOT_STATES);
    print_family(out, "skycap_operations", "gauge",
                 "Operations in progress. Those that are stalled are working too.");
    for (size_t i = 0; i < count; i++)
        print_operations(out, names[i], &figures[i].operations);
    print_family(out, "skycap_operations_total", "counter", "Operations that have ended.");
    for (size_t i = 0; i < count; i++)
        print_ends(out, names[i], &figures[i].operations);
}
