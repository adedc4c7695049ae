/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring what a power failure has undone: see restore.h. */
#include "volumes/restore.h"

#include <limits.h>
#include <stdio.h>

#include "volumes/handle.h"
#include "volumes/mend.h"
#include "volumes/move_rows.h"
#include "volumes/replica_rows.h"
#include "volumes/settled.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

/* How many rows are read at a time. */
#define PAGE 256

/* ---- settling ---- */

/* Never moves back: everything older is durable already. */
static struct error *
settle_up_to(struct engine *engine, uint64_t time_ms)
{
    if (time_ms < engine->settled_ms)
        time_ms = engine->settled_ms;
    struct error *error = settled_write(engine, time_ms);
    if (!error)
        engine->settled_ms = time_ms;
    return error;
}

void
restore_settle(struct engine *engine, uint64_t time_ms)
{
    if (!atomic_exchange(&engine->has_unsettled, false))
        return;
    struct error *error AUTO(error_cleanup) = settle_up_to(engine, time_ms);
    if (!error)
        return;
    atomic_store(&engine->has_unsettled, true);
    log_warn(engine->log, "recent changes are not durable yet", LOG_TEXT("error", error->message));
}

/* ---- after a power failure ---- */

static struct error *
make_again(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct data data = volume_data(volume);
    struct data_settings settings = volume_settings(volume, arena);
    settings.note = rows_note(&volume->base, arena);
    log_warn(engine->log, "recreating a volume that a power failure has undone",
             LOG_TEXT("handle", volume->handle));
    return backend_create(engine->backend, &data, &settings);
}

static bool
was_made_empty(const volume_record *volume)
{
    return volume->state == SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY && !volume->source &&
           !volume->import && !volume->formatted_bytes && !volume->epoch;
}

static struct error *
restore_volume(struct engine *engine, const ProtobufCMessage *record, struct arena *arena)
{
    const volume_record *volume = (const volume_record *)record;
    if (was_made_empty(volume))
        return make_again(engine, volume, arena);
    log_error(engine->log, "the data of a volume is missing", LOG_TEXT("handle", volume->handle),
              LOG_TEXT("name", volume->name));
    return NULL;
}

/* Data in memory is lost when the machine goes down; its row is deleted too. */
static struct error *
forget_volume(struct engine *engine, const ProtobufCMessage *record, struct arena *arena)
{
    (void)arena;
    return rows_delete(engine, &volume_rows, record);
}

/* Copies on other nodes stay: nobody has deleted the snapshot (replica.h). */
static struct error *
forget_copies(struct engine *engine, const char *handle, struct arena *arena)
{
    struct replica_row_list rows;
    struct error *error = replica_rows_list(engine, handle, arena, &rows);
    for (size_t i = 0; i < rows.count && !error; i++)
        error = replica_rows_remove(engine, handle, rows.items[i].node_id);
    return error;
}

static struct error *
forget_snapshot(struct engine *engine, const ProtobufCMessage *record, struct arena *arena)
{
    const char *group_handle = ((const snapshot_record *)record)->group_handle;
    struct error *failed = forget_copies(engine, ((const snapshot_record *)record)->handle, arena);
    if (failed)
        return failed;
    struct row_change rows[2] = {{&snapshot_rows, record}};
    struct row group;
    if (!group_handle[0])
        return rows_delete_all(engine, rows, 1);
    /* The first of them takes its group with it. */
    struct error *error AUTO(error_cleanup) =
        rows_get(engine, &group_rows, group_handle, arena, &group);
    if (error && error->code != CODE_NOT_FOUND)
        return STEAL(error);
    if (!error)
        rows[1] = (struct row_change){&group_rows, group.record};
    return rows_delete_all(engine, rows, error ? 1 : 2);
}

/* A copy is not complete yet (copy.h), and the data of a volume may be on another node. */
static bool
should_have_data(const struct row_kind *kind, const ProtobufCMessage *record)
{
    return kind == &volume_rows ? move_rows_has_data((const volume_record *)record)
                                : ((const snapshot_record *)record)->state ==
                                      SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY;
}

/* Selects the data of volatile back ends, or that of the others. */
static bool
is_missing(struct engine *engine, const struct row_kind *kind, const ProtobufCMessage *record,
           bool is_volatile)
{
    char path[PATH_MAX];
    struct data data = kind == &volume_rows ? volume_data((const volume_record *)record)
                                            : snapshot_data((const snapshot_record *)record);
    if (!should_have_data(kind, record) ||
        backend_of(engine->backend, data.handle)->ops->is_volatile != is_volatile)
        return false;
    struct error *error AUTO(error_cleanup) =
        backend_path(engine->backend, &data, path, sizeof path);
    return error && error->code == CODE_NOT_FOUND;
}

typedef struct error *deal_with(struct engine *engine, const ProtobufCMessage *record,
                                struct arena *arena);

/* Looks at rows that were made since then and whose data is missing. */
static struct error *
look_through(struct engine *engine, const struct row_kind *kind, uint64_t since_ms,
             bool is_volatile, deal_with *deal)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char after[BACKEND_HANDLE_SIZE];
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    handle_print_least(since_ms, after);
    while (!error && page.has_more) {
        error = rows_list(engine, kind, after, PAGE, &arena, &page);
        for (size_t i = 0; i < page.count && !error; i++)
            if (is_missing(engine, kind, page.rows[i].record, is_volatile))
                error = deal(engine, page.rows[i].record, &arena);
        if (page.count)
            snprintf(after, sizeof after, "%s",
                     rows_handle(kind, page.rows[page.count - 1].record));
        arena_clear(&arena);
    }
    return error;
}

/*
 * Before any request is served, looks at the volumes that were made recently. All others were
 * durable when they were answered; upkeep.c looks at those later. A store without the time is new,
 * or was rebuilt from existing volumes.
 */
static struct error *
restore_since_settled(struct engine *engine)
{
    char from[BACKEND_HANDLE_SIZE];
    struct settled settled;
    struct error *error = settled_read(engine, &settled);
    if (error)
        return error;
    engine->settled_ms = settled.time_ms ? settled.time_ms : engine->started_ms;
    engine->is_first_of_boot = !settled.is_same_boot;
    atomic_store(&engine->has_unsettled, true); /* the last process may have left some */
    if (settled.is_same_boot)
        return NULL;
    handle_print_least(engine->settled_ms, from);
    error = look_through(engine, &volume_rows, engine->settled_ms, false, restore_volume);
    struct mend_left left; /* upkeep.c looks at all of them again */
    if (!error)
        error = mend_all(engine, from, &left);
    /*
     * Before the first create: what a power failure leaves of it must not look like volumes whose
     * store is lost.
     */
    if (!error && !settled.time_ms)
        restore_settle(engine, engine->started_ms);
    return error;
}

static struct error *
forget_volatile(struct engine *engine)
{
    struct error *error = look_through(engine, &volume_rows, 0, true, forget_volume);
    return error ? error : look_through(engine, &snapshot_rows, 0, true, forget_snapshot);
}

/* The first of several back ends is never volatile; the others may be. */
struct error *
restore_volumes(struct engine *engine)
{
    bool has_volatile = engine->backend->ops->is_volatile;
    for (const struct backend *one = engine->backend->next; one; one = one->next)
        has_volatile |= one->ops->is_volatile;
    struct error *error = engine->backend->ops->is_volatile ? NULL : restore_since_settled(engine);
    return error || !has_volatile ? error : forget_volatile(engine);
}
