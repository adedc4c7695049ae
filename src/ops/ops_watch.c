/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching operations: see ops.h. The store's watch reports every write, so progress is reported as
 * often as it is saved. A watch that has fallen too far behind lists again, and goes on with what
 * has changed since.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/ops_internal.h"

/* How late a watch may notice ops_stop. */
#define LOOK_MS 250

/* A record from a list, not returned yet. */
struct listed {
    struct listed *next;
    operation_record *record;
};

struct ops_watch {
    struct ops *ops;
    char *id;                    /* NULL: all */
    struct store_watch *changes; /* NULL: list first */
    uint64_t seen;               /* the revision of the last change that was returned; 0: none */
    struct arena listed_arena;
    struct listed *listed;
    struct listed **listed_end;
};

/* ---- listing ---- */

static struct error *
list_one(void *context, const struct store_entry *entry, const operation_record *record)
{
    struct ops_watch *watch = context;
    bool is_news = watch->seen ? entry->revision > watch->seen
                               : watch->id || record->state == OPERATION_STATE(RUNNING);
    if (!is_news || (watch->id && strcmp(watch->id, record->id) != 0))
        return NULL;
    struct listed *listed = arena_alloc(&watch->listed_arena, sizeof *listed);
    *listed = (struct listed){NULL, ops_copy_record(record, &watch->listed_arena)};
    *watch->listed_end = listed;
    watch->listed_end = &listed->next;
    return NULL;
}

static struct error *
list_by_id(struct ops_watch *watch)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry entry;
    operation_record *record;
    struct error *error =
        store_get(watch->ops->options.store, ops_key(watch->id, &arena), &arena, &entry);
    if (!error)
        error = ops_unpack(&entry, &arena, &record);
    return error ? error : list_one(watch, &entry, record);
}

static struct error *
list_all(struct ops_watch *watch)
{
    struct store *store = watch->ops->options.store;
    uint64_t revision;
    arena_clear(&watch->listed_arena);
    const char *prefix = watch->id ? ops_key(watch->id, &watch->listed_arena) : OPS_PREFIX;
    watch->listed = NULL;
    watch->listed_end = &watch->listed;
    struct error *error = store_revision(store, &revision);
    if (!error)
        error = watch->id ? list_by_id(watch) : ops_walk(watch->ops, list_one, watch);
    if (error)
        return error;
    watch->seen = revision;
    return store_watch_open(store, prefix, revision, &watch->changes);
}

static struct error *
list_again(struct ops_watch *watch)
{
    store_watch_close(watch->changes);
    watch->changes = NULL;
    return list_all(watch);
}

/* ---- the watch ---- */

struct error *
ops_watch_open(struct ops *ops, const char *id, struct ops_watch **out)
{
    struct ops_watch *watch = memory_zeroed(sizeof *watch);
    watch->ops = ops;
    watch->id = id ? memory_string(id) : NULL;
    arena_init(&watch->listed_arena, NULL, 0, SIZE_MAX);
    struct error *error = list_all(watch);
    if (error) {
        bool is_unknown = error->code == CODE_NOT_FOUND;
        ops_watch_close(watch);
        if (!is_unknown)
            return error;
        error_free(error);
        return error_new(CODE_NOT_FOUND, "there is no operation \"%s\"", id);
    }
    *out = watch;
    return NULL;
}

void
ops_watch_close(struct ops_watch *watch)
{
    if (!watch)
        return;
    store_watch_close(watch->changes);
    arena_clear(&watch->listed_arena);
    free(watch->id);
    free(watch);
}

/* `*out` NULL: call again. */
static struct error *
take_change(struct ops_watch *watch, uint32_t timeout_ms, struct arena *arena,
            operation_record **out)
{
    struct store_entry entry;
    operation_record *record;
    *out = NULL;
    struct error *error = store_watch_next(watch->changes, timeout_ms, arena, &entry);
    if (error && error->code == CODE_OUT_OF_RANGE) {
        error_free(error);
        return list_again(watch);
    }
    if (error)
        return error;
    watch->seen = entry.revision;
    if (!entry.value)
        return NULL; /* its record was removed */
    error = ops_unpack(&entry, arena, &record);
    if (!error && (!watch->id || strcmp(watch->id, record->id) == 0))
        *out = record;
    return error;
}

static struct error *
take_next(struct ops_watch *watch, uint32_t timeout_ms, struct arena *arena, operation_record **out)
{
    struct listed *first = watch->listed;
    if (!first)
        return take_change(watch, timeout_ms, arena, out);
    watch->listed = first->next;
    if (!first->next)
        watch->listed_end = &watch->listed;
    *out = ops_copy_record(first->record, arena);
    return NULL;
}

struct error *
ops_watch_next(struct ops_watch *watch, uint32_t timeout_ms, struct arena *arena,
               operation_record **out)
{
    uint64_t end = clock_now_ms() + timeout_ms;
    *out = NULL;
    for (;;) {
        if (ops_is_stopped(watch->ops))
            return error_new(CODE_UNAVAILABLE, "the server is shutting down");
        uint64_t now = clock_now_ms();
        uint64_t left = now < end ? end - now : 0;
        struct error *error =
            take_next(watch, (uint32_t)(left < LOOK_MS ? left : LOOK_MS), arena, out);
        bool is_quiet = error && error->code == CODE_DEADLINE_EXCEEDED && left > LOOK_MS;
        if (error && !is_quiet)
            return error;
        error_free(error);
        if (!*out)
            continue;
        *out = operation_current(watch->ops, *out, arena);
        if ((*out)->state != OPERATION_STATE(RUNNING))
            ops_wait_until_removed(watch->ops, *out);
        return NULL;
    }
}
