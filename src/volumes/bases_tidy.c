/* SPDX-License-Identifier: Apache-2.0 */
/* Which bases are kept: see bases.h. The names of bases list them by volume. */
#include <string.h>

#include "base/clock.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name
#define DAY_NS (INT64_C(24) * 3600 * 1000000000)
#define LONGEST_TRANSFER_NS DAY_NS
#define LONGEST_NS (7 * DAY_NS)
#define LONGEST_FOR_EXPORT_NS (35 * DAY_NS)
#define LEAST_FREE 10 /* 1/10 of the pool */

struct bases {
    snapshot_record **records; /* by volume */
    size_t count;
};

/* Those of one volume, or all if it is "". */
static struct error *
list_bases(struct engine *engine, const char *volume, struct arena *arena, struct bases *out)
{
    struct store_list names;
    const char *prefix = volume[0] ? arena_print(arena, "snapshot-name/transfer/%s/", volume)
                                   : "snapshot-name/transfer/";
    *out = (struct bases){0};
    struct error *error = store_list(engine->store, prefix, NULL, 0, arena, &names);
    if (error)
        return error;
    out->records = arena_alloc(arena, names.count * sizeof *out->records);
    for (size_t i = 0; i < names.count && !error; i++) {
        const struct store_entry *entry = &names.entries[i];
        const char *handle = arena_copy(arena, entry->value, entry->value_size);
        error = snapshot_get_any(engine, handle, arena, &out->records[out->count]);
        if (!error && out->records[out->count]->purpose == PURPOSE(BASE))
            out->count++;
        error = error_forgive(error, CODE_NOT_FOUND);
    }
    return error;
}

/* ---- deleting ---- */

static struct error *
check_not_offered(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record *now;
    struct error *error = snapshot_get_any(engine, handle, &arena, &now);
    if (!error && clock_unix_ns() - now->offered_ns < DAY_NS)
        return error_new(CODE_FAILED_PRECONDITION, "its volume may be recovered from it");
    return error;
}

/*
 * A base COPYING that this node takes is being made by an operation: it is deleted once it is
 * complete. One that was received has none; whoever makes it holds the lock.
 */
static struct error *
delete_base(struct engine *engine, const snapshot_record *snapshot, bool even_offered)
{
    struct data data = snapshot_data(snapshot);
    struct name_lock *name AUTO(name_lock_release) = NULL;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    if (!snapshot->kept && snapshot->state == STATE(COPYING))
        return error_new(CODE_ABORTED, "the snapshot is still being taken");
    struct error *error = name_lock_take(&engine->locks, "snapshot", snapshot->name, &name);
    if (!error)
        error = data_lock_exclusive(engine, &snapshot_rows, snapshot->handle, &lock);
    if (!error && !even_offered)
        error = check_not_offered(engine, snapshot->handle);
    if (!error)
        error = rows_delete(engine, &snapshot_rows, &snapshot->base);
    if (!error)
        rows_drop_data(engine, &data);
    return error;
}

struct error *
bases_delete(struct engine *engine, const snapshot_record *snapshot)
{
    return delete_base(engine, snapshot, true);
}

/* What is in use stays until the next time. */
static void
drop(struct engine *engine, const snapshot_record *snapshot, bool even_offered)
{
    struct error *error AUTO(error_cleanup) = delete_base(engine, snapshot, even_offered);
    if (error)
        log_debug(engine->log, "a base of transfers is deleted later",
                  LOG_TEXT("snapshot", snapshot->handle), LOG_TEXT("error", error->message));
}

/* ---- which ---- */

static bool
is_pool_nearly_full(struct engine *engine)
{
    struct backend_capacity capacity;
    struct error *error AUTO(error_cleanup) = backend_capacity(engine->backend, &capacity);
    return !error && capacity.available_bytes < capacity.total_bytes / LEAST_FREE;
}

/* Bases of the same volume stand together. */
static bool
has_newer(const struct bases *bases, size_t which)
{
    const snapshot_record *old = bases->records[which];
    for (int step = -1; step <= 1; step += 2)
        for (size_t i = which + (size_t)step; i < bases->count; i += (size_t)step) {
            const snapshot_record *other = bases->records[i];
            if (strcmp(other->source_handle, old->source_handle) != 0)
                break;
            if (other->kept && other->state == STATE(READY) &&
                strcmp(other->peer_node, old->peer_node) == 0 &&
                strcmp(other->handle, old->handle) > 0)
                return true;
        }
    return false;
}

/* Whether no export can use it any more. If that cannot be told, it is kept. */
static bool
has_no_export(struct engine *engine, const snapshot_record *base)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_list names = {0};
    struct row volume;
    const char *repository = base->peer_node + strlen(BASES_OF_REPOSITORY);
    struct error *error AUTO(error_cleanup) =
        rows_get(engine, &volume_rows, base->source_handle, &arena, &volume);
    if (error)
        return error->code == CODE_NOT_FOUND;
    error = repository_pool_list(engine, &arena, &names);
    for (size_t i = 0; i < names.count; i++)
        if (!strcmp(names.items[i], repository))
            return false;
    return !error;
}

static bool
is_superfluous(struct engine *engine, const struct bases *bases, size_t which, bool is_nearly_full)
{
    const snapshot_record *base = bases->records[which];
    int64_t age_ns = clock_unix_ns() - base->created_ns;
    bool is_for_export =
        !strncmp(base->peer_node, BASES_OF_REPOSITORY, strlen(BASES_OF_REPOSITORY));
    int64_t longest_ns = is_for_export ? LONGEST_FOR_EXPORT_NS : LONGEST_NS;
    if (!base->kept)
        return age_ns > LONGEST_TRANSFER_NS;
    return is_nearly_full || age_ns > longest_ns || base->state != STATE(READY) ||
           has_newer(bases, which) || (is_for_export && has_no_export(engine, base));
}

void
bases_tidy(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct bases bases;
    struct error *error AUTO(error_cleanup) = list_bases(engine, "", &arena, &bases);
    if (error)
        log_warn(engine->log, "could not look for old bases of transfers",
                 LOG_TEXT("error", error->message));
    bool is_nearly_full = !error && bases.count && is_pool_nearly_full(engine);
    for (size_t i = 0; !error && i < bases.count; i++)
        if (is_superfluous(engine, &bases, i, is_nearly_full))
            drop(engine, bases.records[i], false);
}

struct error *
bases_offer(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct name_lock *name AUTO(name_lock_release) = NULL;
    struct row row;
    struct error *error = rows_get(engine, &snapshot_rows, handle, &arena, &row);
    if (error || ((snapshot_record *)row.record)->purpose != PURPOSE(BASE))
        return error;
    error = name_lock_wait(&engine->locks, "snapshot", ((snapshot_record *)row.record)->name,
                           DATA_LOCK_WAIT_MS, &name);
    if (!error)
        error = rows_get(engine, &snapshot_rows, handle, &arena, &row);
    if (error)
        return error;
    ((snapshot_record *)row.record)->offered_ns = clock_unix_ns();
    return rows_update(engine, &snapshot_rows, row.record, &row.revision);
}

void
bases_drop_of(struct engine *engine, const char *volume)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct bases bases;
    struct error *error AUTO(error_cleanup) = list_bases(engine, volume, &arena, &bases);
    for (size_t i = 0; !error && i < bases.count; i++)
        if (bases.records[i]->kept)
            drop(engine, bases.records[i], true);
}
