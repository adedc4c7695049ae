/* SPDX-License-Identifier: Apache-2.0 */
/* The record of an export, and the row of its snapshot: see export.h. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "message/message_bytes.h"
#include "volumes/export_internal.h"
#include "volumes/export_past.h"
#include "volumes/snapshot.h"

#define PAGE_ROWS 256 /* that are in memory while one is looked for */

/* ---- the record ---- */

static const char *
volume_name(struct exporting *export)
{
    struct row row;
    struct error *error AUTO(error_cleanup) =
        rows_get(export->engine, &volume_rows, export->snapshot->source_handle, &export->try, &row);
    return error ? "" : ((const volume_record *)row.record)->name;
}

static void
describe_origin(struct exporting *export)
{
    Skycap__Exports__Origin *origin = arena_alloc(&export->try, sizeof *origin);
    const struct btrfs_origin *from = &export->base.origin;
    skycap__exports__origin__init(origin);
    origin->file_system.data = (uint8_t *)from->file_system;
    origin->file_system.len = sizeof from->file_system;
    origin->parent.data = (uint8_t *)from->parent;
    origin->parent.len = sizeof from->parent;
    origin->snapshot.data = (uint8_t *)from->snapshot;
    origin->snapshot.len = sizeof from->snapshot;
    origin->generation = from->generation;
    origin->taken_s = from->taken_s;
    export->record.origin = origin;
}

static void
describe(struct exporting *export, char *kept)
{
    const snapshot_record *snapshot = export->snapshot;
    export_record *record = &export->record;
    struct repository_counters counters = {0};
    repository_writer_count(export->writer, &counters);
    record->name = snapshot->name;
    record->handle = snapshot->handle;
    record->volume_name = (char *)volume_name(export);
    record->volume_handle = snapshot->source_handle;
    record->node_id = (char *)export->engine->node_id;
    record->kind =
        snapshot_data(snapshot).kind == KIND_IMAGE ? EXPORT_KIND(IMAGE) : EXPORT_KIND(TREE);
    record->size_bytes = snapshot->size_bytes;
    record->fs_type = snapshot->fs_type;
    record->sector_bytes = snapshot->sector_bytes;
    record->formatted_bytes = snapshot->formatted_bytes;
    record->blank = snapshot->blank;
    record->nocow = snapshot->nocow;
    record->taken_ns = snapshot->created_ns;
    record->exported_ns = clock_unix_ns();
    record->manifest.data = export->manifest.bytes;
    record->manifest.len = sizeof export->manifest.bytes;
    record->parent = (char *)(export->base.item ? export->base.item->id : "");
    record->full_reason = (char *)(export->base.reason ? export->base.reason : "");
    record->bytes_new = counters.bytes_new;
    record->bytes_stored = counters.bytes_stored;
    record->duration_ms = clock_now_ms() - export->started_ms;
    record->local_handles = arena_alloc(&export->try, 2 * sizeof(char *));
    record->n_local_handles = 0;
    record->local_handles[record->n_local_handles++] = snapshot->handle;
    if (kept[0])
        record->local_handles[record->n_local_handles++] = kept;
    if (export->base.has_origin)
        describe_origin(export);
}

/* Whether what the new record took from its base cannot have been pruned. */
static struct error *
check_parent(struct exporting *export, const char *name, bool *is_good)
{
    struct buffer parent AUTO(buffer_clear) = {0};
    *is_good = true;
    if (!export->base.item)
        return NULL;
    struct error *error =
        repository_snapshot_get(export->use.repository, export->base.item->id, &parent);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    *is_good = false;
    export->full_reason = "the export that it was based on was removed meanwhile";
    return repository_snapshot_remove(export->use.repository, name);
}

struct error *
export_commit_record(struct exporting *export, char name[REPOSITORY_NAME_BYTES], bool *is_good)
{
    char kept[BACKEND_HANDLE_SIZE];
    size_t size;
    export_base_keep(export->engine, export->snapshot, export->repository_name, kept);
    if (export->base.has_origin)
        export_past_note(export->engine, export->snapshot, &export->base.origin);
    struct error *error = repository_writer_flush(export->writer);
    describe(export, kept);
    uint8_t *bytes = message_bytes_pack(&export->record.base, &export->try, &size);
    if (!error)
        error = repository_writer_commit(export->writer, bytes, size, name);
    /* From here on the record names what was kept, also if the rest has to be tried again. */
    bool is_recorded = !error;
    if (!error)
        error = check_parent(export, name, is_good);
    if (!is_recorded || !*is_good)
        export_base_forget(export->engine, kept);
    return error;
}

/* ---- the row ---- */

static snapshot_export *
make_export(struct exporting *export, const char *id, const export_record *record)
{
    snapshot_export *made = arena_alloc(&export->try, sizeof *made);
    skycap__records__snapshot_export__init(made);
    made->repository = (char *)export->repository_name;
    made->id = (char *)id;
    made->exported_ns = record->exported_ns;
    made->full_reason = record->full_reason;
    made->bytes_read = record->bytes_read;
    made->bytes_stored = record->bytes_stored;
    made->duration_ms = record->duration_ms;
    return made;
}

/* Replaces an earlier export to the same repository. */
static void
add_export(snapshot_record *snapshot, snapshot_export *made, struct arena *arena)
{
    snapshot_export **all = arena_alloc(arena, (snapshot->n_exports + 1) * sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < snapshot->n_exports; i++)
        if (strcmp(snapshot->exports[i]->repository, made->repository) != 0)
            all[count++] = snapshot->exports[i];
    all[count++] = made;
    snapshot->exports = all;
    snapshot->n_exports = count;
}

struct error *
export_commit_row(struct exporting *export, const char *id, const export_record *record)
{
    struct row row;
    struct error *error;
    do {
        error =
            rows_get(export->engine, &snapshot_rows, export->snapshot->handle, &export->try, &row);
        if (error)
            return error;
        add_export((snapshot_record *)row.record, make_export(export, id, record), &export->try);
        error = rows_update(export->engine, &snapshot_rows, row.record, &row.revision);
        if (!error || error->code != CODE_ABORTED)
            return error;
        error_free(error); /* somebody has changed the row */
    } while (true);
}

/* ---- removing ---- */

static bool
drop_export(snapshot_record *snapshot, const char *repository, const char *id)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->n_exports; i++) {
        snapshot_export *one = snapshot->exports[i];
        if (strcmp(one->repository, repository) != 0 || strcmp(one->id, id) != 0)
            snapshot->exports[count++] = one;
    }
    bool had = count < snapshot->n_exports;
    snapshot->n_exports = count;
    return had;
}

static struct error *
forget_in_row(struct engine *engine, struct row row, const char *repository, const char *id,
              struct arena *arena)
{
    const char *handle = rows_handle(&snapshot_rows, row.record);
    struct error *error = NULL;
    while (!error && drop_export((snapshot_record *)row.record, repository, id)) {
        error = rows_update(engine, &snapshot_rows, row.record, &row.revision);
        if (!error || error->code != CODE_ABORTED)
            return error;
        error_free(error); /* somebody has changed the row */
        error = rows_get(engine, &snapshot_rows, handle, arena, &row);
    }
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
export_forget(struct engine *engine, const char *repository, const char *id)
{
    char after[BACKEND_HANDLE_SIZE] = "";
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    while (!error && page.has_more) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        error =
            rows_list(engine, &snapshot_rows, after[0] ? after : NULL, PAGE_ROWS, &arena, &page);
        for (size_t i = 0; !error && i < page.count; i++) {
            snprintf(after, sizeof after, "%s", rows_handle(&snapshot_rows, page.rows[i].record));
            error = forget_in_row(engine, page.rows[i], repository, id, &arena);
        }
    }
    return error;
}
