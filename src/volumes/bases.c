/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common bases: see bases.h.
 *
 * What is received has a handle of another node, which may be older than this process. The sweep
 * takes data with an old handle and without a row for a leftover. So the row is written first, as
 * COPYING, and becomes READY when the data is there. A crash in between leaves a row COPYING, which
 * bases_tidy deletes.
 */
#include "volumes/bases.h"

#include <stdio.h>
#include <string.h>

#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/remote_data.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name
#define PAGE 256

const char *
bases_name(const char *volume, const char *id, struct arena *arena)
{
    return arena_print(arena, "transfer/%s/%s", volume, id);
}

bool
bases_can_tell_difference(struct engine *engine, const struct data *data)
{
    const struct backend *home = backend_of(engine->backend, data->handle);
    return data->kind == KIND_IMAGE ? home->finds_changes : strcmp(home->ops->name, "btrfs") == 0;
}

/* ---- finding ---- */

/* The last ones that were found, in a ring. */
struct finding {
    const char *volume;
    char handles[REMOTE_DATA_HAVE][BACKEND_HANDLE_SIZE];
    size_t count;
};

static void
take_row(struct finding *finding, const snapshot_record *snapshot)
{
    if (snapshot->state == STATE(READY) && strcmp(snapshot->source_handle, finding->volume) == 0)
        snprintf(finding->handles[finding->count++ % REMOTE_DATA_HAVE], BACKEND_HANDLE_SIZE, "%s",
                 snapshot->handle);
}

static struct error *
find_in_pages(struct engine *engine, struct finding *finding)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char after[BACKEND_HANDLE_SIZE] = "";
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    while (!error && page.has_more) {
        arena_clear(&arena);
        error = rows_list(engine, &snapshot_rows, after, PAGE, &arena, &page);
        for (size_t i = 0; !error && i < page.count; i++)
            take_row(finding, (snapshot_record *)page.rows[i].record);
        if (page.count && !error)
            snprintf(after, sizeof after, "%s",
                     rows_handle(&snapshot_rows, page.rows[page.count - 1].record));
    }
    return error;
}

struct error *
bases_find(struct engine *engine, const char *volume, struct arena *arena, struct bases_list *out)
{
    struct finding finding = {.volume = volume};
    *out = (struct bases_list){0};
    struct error *error = find_in_pages(engine, &finding);
    if (error)
        return error;
    out->count = finding.count < REMOTE_DATA_HAVE ? finding.count : REMOTE_DATA_HAVE;
    out->handles = arena_alloc(arena, out->count * sizeof *out->handles);
    for (size_t i = 0; i < out->count; i++)
        out->handles[i] =
            arena_string(arena, finding.handles[(finding.count - 1 - i) % REMOTE_DATA_HAVE]);
    return NULL;
}

/* ---- the target ---- */

static struct error *
make_data(struct engine *engine, const struct data *from, const struct data *to,
          snapshot_record *record, struct arena *arena)
{
    record->state = STATE(READY);
    struct data_settings settings = {.note = rows_note(&record->base, arena)};
    struct error *error = backend_remove(engine->backend, to);
    return error ? error : backend_copy(engine->backend, from, to, &settings, NULL);
}

/*
 * `*is_there`: nothing is to be done, also for a copy that users have asked for (replica.h).
 * Otherwise there is a row COPYING when this returns.
 */
static struct error *
begin_row(struct engine *engine, snapshot_record *record, struct arena *arena, struct row *row,
          bool *is_there)
{
    *is_there = false;
    struct error *error AUTO(error_cleanup) =
        rows_get(engine, &snapshot_rows, record->handle, arena, row);
    if (!error)
        *is_there = ((snapshot_record *)row->record)->state == STATE(READY) ||
                    ((snapshot_record *)row->record)->purpose != PURPOSE(BASE);
    if (!error || error->code != CODE_NOT_FOUND)
        return STEAL(error);
    record->state = STATE(COPYING);
    struct error *failed = rows_insert(engine, &snapshot_rows, &record->base);
    return failed ? failed : rows_get(engine, &snapshot_rows, record->handle, arena, row);
}

/* The lock of the name is held. */
static struct error *
keep_held(struct engine *engine, snapshot_record *record, const struct data *from,
          struct arena *arena)
{
    struct data to = snapshot_data(record);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct row row;
    bool is_there;
    struct error *error = begin_row(engine, record, arena, &row, &is_there);
    if (!error && !is_there) /* the sweep may be removing old data of it */
        error = data_lock_wait(engine, &snapshot_rows, record->handle, DATA_LOCK_WAIT_MS, &lock);
    if (error || is_there)
        return error;
    error = make_data(engine, from, &to, record, arena);
    if (!error)
        error = rows_update(engine, &snapshot_rows, &record->base, &row.revision);
    if (error) {
        error_free(rows_delete(engine, &snapshot_rows, &record->base)); /* or by bases_tidy */
        rows_drop_data(engine, &to);
    }
    return error;
}

bool
bases_keep_received(struct engine *engine, const snapshot_record *told, const struct data *from)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    snapshot_record record = *told;
    struct data to = snapshot_data(told);
    if (!backend_copies_cheaply(engine->backend, from, &to))
        return false;
    record.name = (char *)bases_name(told->source_handle, told->handle, &arena);
    record.purpose = PURPOSE(BASE);
    record.kept = true;
    struct error *error AUTO(error_cleanup) =
        name_lock_take(&engine->locks, "snapshot", record.name, &lock);
    if (!error)
        error = keep_held(engine, &record, from, &arena);
    if (error)
        log_info(engine->log, "what was received is not kept for later transfers",
                 LOG_TEXT("snapshot", told->handle), LOG_TEXT("error", error->message));
    return !error;
}

/* ---- the source ---- */

static struct error *
has_volume(struct engine *engine, const char *handle, struct arena *arena, bool *out)
{
    struct row row;
    struct error *error = rows_get(engine, &volume_rows, handle, arena, &row);
    *out = !error;
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
mark_kept(struct engine *engine, const char *handle, struct arena *arena)
{
    struct row row;
    struct error *error = rows_get(engine, &snapshot_rows, handle, arena, &row);
    if (error)
        return error;
    snapshot_record *record = (snapshot_record *)row.record;
    struct data data = snapshot_data(record);
    record->kept = true;
    error = rows_update(engine, &snapshot_rows, row.record, &row.revision);
    struct data_note note = rows_note(row.record, arena);
    return error ? error : backend_write_note(engine->backend, &data, note.bytes, note.size);
}

struct error *
bases_end_sent(struct engine *engine, const char *handle, bool is_kept)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record *snapshot;
    struct error *error = snapshot_get_any(engine, handle, &arena, &snapshot);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (snapshot->purpose != PURPOSE(BASE) || snapshot->kept)
        return NULL;
    struct data data = snapshot_data(snapshot);
    bool is_wanted = is_kept && bases_can_tell_difference(engine, &data);
    if (is_wanted)
        error = has_volume(engine, snapshot->source_handle, &arena, &is_wanted);
    if (!error)
        error = is_wanted ? mark_kept(engine, handle, &arena) : bases_delete(engine, snapshot);
    return error_forgive(error, CODE_NOT_FOUND);
}
