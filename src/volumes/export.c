/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports: see export.h.
 *
 * The record in the repository is written before the row here. After a crash in between, the
 * operation runs again and finds the record.
 *
 * Prune deletes what no record refers to. An export that takes chunks from its base is safe if the
 * base's record is still there after its own was written: until then, prune found the chunks in the
 * one, and from then on in the other. If the base is gone then, the record is removed again, and
 * everything is read.
 */
#include "volumes/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "repository/patience.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/export_internal.h"
#include "volumes/repository_counts.h"
#include "volumes/snapshot.h"

#define OTHER_BASES 3u /* that are tried if the record of one is damaged */
#define LOOK_MS 3000u  /* how long a request waits for the repository */
#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

/* ---- names ---- */

const char *
export_operation(const char *handle, const char *repository, struct arena *arena)
{
    return arena_print(arena, "%s.%s", handle, repository);
}

const snapshot_export *
export_find(const snapshot_record *snapshot, const char *repository)
{
    for (size_t i = 0; i < snapshot->n_exports; i++)
        if (!strcmp(snapshot->exports[i]->repository, repository))
            return snapshot->exports[i];
    return NULL;
}

static struct exporting *
exporting_new(struct engine *engine)
{
    struct exporting *export = memory_zeroed(sizeof *export);
    export->engine = engine;
    export->fd = -1;
    export->started_ms = clock_now_ms();
    arena_init(&export->arena, NULL, 0, SIZE_MAX);
    arena_init(&export->try, NULL, 0, SIZE_MAX);
    return export;
}

static void
exporting_free(void *context)
{
    struct exporting *export = context;
    name_lock_release(&export->lock);
    error_free(export->obstacle);
    arena_clear(&export->arena);
    arena_clear(&export->try);
    free(export);
}

/* ---- the work ---- */

static void
close_parts(struct exporting *export)
{
    repository_writer_close(STEAL(export->writer));
    export_base_release(&export->base);
    repository_pool_release(&export->use);
    files_close(&export->fd);
}

/* The lists of records come from a cache: looks whether the base's is good in the repository. */
static struct error *
find_base(struct exporting *export, unsigned tries)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct export_base_request request = {
        .engine = export->engine,
        .snapshot = export->snapshot,
        .repository = export->use.repository,
        .fd = export->fd,
        .incomplete = export->incomplete,
        .arena = &export->try,
    };
    struct error *error = export_base_find(&request, &export->base);
    const struct export_item *base = export->base.same ? export->base.same : export->base.item;
    if (error || !base)
        return error;
    error = repository_snapshot_get(export->use.repository, base->id, &bytes);
    bool is_bad = error && (error->code == CODE_DATA_LOSS || error->code == CODE_NOT_FOUND);
    if (!is_bad || !tries)
        return error;
    error_free(error); /* it is in no list any more */
    export_base_release(&export->base);
    return find_base(export, tries - 1);
}

static struct error *
check_chunk(const struct repository_id *id, void *writer)
{
    bool is_there = false;
    struct error *error = repository_writer_reuse(writer, id, &is_there);
    return error || is_there ? error : error_new(CODE_NOT_FOUND, "a chunk is missing");
}

/* Whether the repository has all chunks of an earlier export. */
static struct error *
check_chunks(struct exporting *export, const char *id, bool *has_all)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct repository_visitor visitor = {.take = check_chunk, .context = export->writer};
    struct error *error = repository_snapshot_get(export->use.repository, id, &bytes);
    if (!error)
        error = export_references.list(export->use.repository, bytes.bytes, bytes.size, &visitor,
                                       export_references.context);
    *has_all = !error;
    return error_forgive(error_forgive(error, CODE_NOT_FOUND), CODE_DATA_LOSS);
}

/* Packs are lost: what was exported before is used only if it is all there. */
static struct error *
check_earlier(struct exporting *export)
{
    bool has_all = true;
    export->position = NULL;
    if (!export->base.item)
        return NULL;
    struct error *error = check_chunks(export, export->base.item->id, &has_all);
    if (has_all)
        return error;
    export->base.reason =
        arena_print(&export->try,
                    "packs are missing in the repository, and with them parts of the export %.12s",
                    export->base.item->id);
    export->base.item = NULL;
    return error;
}

static struct error *
begin(struct exporting *export)
{
    struct engine *engine = export->engine;
    struct error *error = repository_pool_open_soon(engine, export->repository_name, &export->use);
    export->pause.is_down = !export->use.repository;
    if (!error && !export->ignores_position)
        error = export_position_read(engine, export->row, &export->try, &export->position);
    if (!error)
        error = export_data_open(export);
    if (!error)
        error = find_base(export, OTHER_BASES);
    if (!error && export->full_reason) {
        export->base.item = NULL;
        export->base.reason = export->full_reason;
    }
    if (!error && !export->base.same)
        error = repository_writer_open(export->use.repository, &export->writer);
    if (!error && export->writer && repository_writer_has_losses(export->writer))
        error = check_earlier(export);
    return error;
}

/*
 * The snapshot was exported: before a crash, and its base may have been removed before it was
 * checked, or packs were lost since. All chunks are looked for. If one is missing, everything is
 * read.
 */
static struct error *
check_same(struct exporting *export, bool *is_good)
{
    const char *id = export->base.same->id;
    struct error *error = repository_writer_open(export->use.repository, &export->writer);
    if (!error)
        error = check_chunks(export, id, is_good);
    if (error || *is_good)
        return error;
    export->incomplete = arena_string(&export->arena, id);
    export->full_reason = "the repository does not have all of its earlier export";
    log_info(export->engine->log, "an export is not whole: everything is read",
             LOG_TEXT("snapshot", export->snapshot->handle), LOG_TEXT("export", id));
    return NULL;
}

/* With the same contents the earlier record is whole again; otherwise the new one replaces it. */
static struct error *
commit(struct exporting *export, bool *is_good)
{
    char name[REPOSITORY_NAME_BYTES];
    const export_record *earlier = export->base.aside ? export->base.aside->record : NULL;
    struct repository_id manifest = {0};
    if (earlier)
        manifest = export_record_manifest(earlier);
    if (earlier && !memcmp(&manifest, &export->manifest, sizeof manifest)) {
        struct error *error = repository_writer_finish(export->writer);
        return error ? error : export_commit_row(export, export->base.aside->id, earlier);
    }
    struct error *error = export_commit_record(export, name, is_good);
    if (!error && *is_good && earlier)
        error = error_forgive(
            repository_snapshot_remove(export->use.repository, export->base.aside->id),
            CODE_NOT_FOUND);
    if (error || !*is_good)
        return error;
    return export_commit_row(export, arena_string(&export->try, name), &export->record);
}

/* `*is_good` is false if it has to be done again. */
static struct error *
try_once(struct exporting *export, bool *is_good)
{
    *is_good = true;
    skycap__exports__export_record__init(&export->record);
    export->base = (struct export_base){0};
    export->position = NULL;
    arena_clear(&export->try);
    struct error *error = begin(export);
    if (!error && export->base.same) {
        error = check_same(export, is_good);
        export->record.content_bytes = export->base.same->record->content_bytes;
        return error || !*is_good
                   ? error
                   : export_commit_row(export, export->base.same->id, export->base.same->record);
    }
    if (!error)
        error = snapshot_data(export->snapshot).kind == KIND_IMAGE ? export_data_image(export)
                                                                   : export_data_tree(export);
    return error ? error : commit(export, is_good);
}

/*
 * Whether the error may be due to what the export was based on, or to what it has saved: parts of
 * that may be damaged or pruned, or the file system cannot tell what has changed since. Then
 * everything is read in the next try.
 */
static bool
can_begin_anew(struct exporting *export, const struct error *error)
{
    bool is_broken = error->code == CODE_DATA_LOSS || error->code == CODE_NOT_FOUND ||
                     error->code == CODE_OUT_OF_RANGE;
    if (!is_broken || (!export->base.item && !export->position))
        return false;
    if (export->base.item)
        export->full_reason =
            arena_print(&export->arena, "the export %.12s cannot be used as its base: %s",
                        export->base.item->id, error->message);
    export->position = NULL;
    export->ignores_position = true;
    log_warn(export->engine->log, "an export begins again and reads everything",
             LOG_TEXT("snapshot", export->snapshot->handle), LOG_TEXT("error", error->message));
    return true;
}

/* It was stopped for so long that prune may have deleted what it stored. It may happen once. */
static bool
was_taken_for_dead(struct exporting *export, const struct error *error)
{
    bool is = error && error->code == CODE_ABORTED && export->writer && !export->was_dead;
    export->was_dead |= is;
    return is;
}

/* One try. An error that the next try may not have is none; then `*is_good` is false. */
static struct error *
try_again(struct exporting *export, bool *is_good)
{
    struct error *error = try_once(export, is_good);
    bool begins_anew = error && can_begin_anew(export, error);
    bool goes_on = was_taken_for_dead(export, error);
    close_parts(export);
    if (!begins_anew && !goes_on && (!error || error->code != CODE_UNAVAILABLE))
        return error;
    *is_good = false;
    if (!begins_anew) {
        log_info(export->engine->log, "an export was interrupted; it goes on",
                 LOG_TEXT("snapshot", export->snapshot->handle), LOG_TEXT("error", error->message));
        repository_pause(&export->pause, export->progress);
    }
    error_free(error);
    return NULL;
}

static struct error *
run(void *context, const struct progress *progress)
{
    struct exporting *export = context;
    struct patience patience = {.is_over = progress->cancelled,
                                .context = progress->context,
                                .repeat_ms = REPOSITORY_REPEAT_MS};
    bool is_good = false;
    struct error *error = STEAL(export->obstacle);
    export->progress = progress;
    patience_begin(&patience);
    while (!error && !is_good) {
        error = progress->cancelled(progress->context)
                    ? error_new(CODE_CANCELLED, "the export was cancelled")
                    : try_again(export, &is_good);
    }
    patience_end(&patience);
    if (!error) {
        uint64_t bytes = export->record.content_bytes;
        progress->report(progress->context, bytes, bytes);
        bases_tidy(export->engine);
    }
    return error;
}

/* For metrics. */
static void
count(struct exporting *export, const struct error *result)
{
    struct repository_count add = {
        .read_bytes = result ? 0 : export->record.bytes_read,
        .stored_bytes = result ? 0 : export->record.bytes_stored,
    };
    add.exports[repository_counts_end_of(result)] = 1;
    repository_counts_add(export->engine->repository_counts, export->repository_name, &add);
}

static void
settle(void *context, const struct error *result, struct arena *arena, struct ops_changes *out)
{
    struct exporting *export = context;
    out->items[out->count++] =
        (struct store_change){export_position_row(export->operation, arena), NULL, 0, STORE_ANY};
    if (!result)
        out->items[out->count++] = repository_counts_note_export(export->repository_name, arena);
    count(export, result);
}

/* ---- starting ---- */

/* Locks the snapshot's data and reads its row. */
static struct error *
find_snapshot(struct exporting *export, const char *handle)
{
    struct error *error = data_lock_shared(export->engine, &snapshot_rows, handle, &export->lock);
    if (!error)
        error = snapshot_get(export->engine, handle, &export->arena, &export->snapshot);
    if (!error && export->snapshot->state != STATE(READY))
        error = error_new(CODE_ABORTED, "the snapshot \"%s\" is not ready to use yet; try again",
                          handle);
    return error;
}

static struct ops_spec
spec_of(struct exporting *export, const char *handle)
{
    return (struct ops_spec){
        .id = export->operation,
        .kind = EXPORT_SNAPSHOT,
        .subject = handle,
        .units = "bytes",
        .description = arena_print(&export->arena, "export the snapshot %s to the repository %s",
                                   export->snapshot ? export->snapshot->name : handle,
                                   export->repository_name),
        .work = {export, run, settle, exporting_free},
    };
}

static void
set_names(struct exporting *export, const char *handle, const char *repository)
{
    export->repository_name = arena_string(&export->arena, repository);
    export->operation = export_operation(handle, repository, &export->arena);
    export->row = export_position_row(export->operation, &export->arena);
}

/*
 * Whether the repository still has what the row says; if it cannot be reached now, that counts.
 * What is damaged is exported again. A new export needs only its file.
 */
static struct error *
is_exported(struct engine *engine, const snapshot_record *snapshot,
            const struct export_request *request, bool *out)
{
    const char *repository = request->repository;
    struct repository_use use AUTO(repository_pool_release) = {0};
    struct buffer record AUTO(buffer_clear) = {0};
    const snapshot_export *found = export_find(snapshot, repository);
    struct repository_place place;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    *out = false;
    if (!found || request->again)
        return repository_pool_find(engine, repository, &arena, &place);
    struct patience patience = {.until_ms = clock_now_ms() + LOOK_MS};
    patience_begin(&patience);
    struct error *error = repository_pool_open(engine, repository, &use);
    bool is_open = !error;
    if (is_open)
        error = repository_snapshot_get(use.repository, found->id, &record);
    patience_end(&patience);
    *out = !error || error->code == CODE_UNAVAILABLE;
    error = error_forgive(error, CODE_UNAVAILABLE);
    if (is_open)
        error = error_forgive(error_forgive(error, CODE_NOT_FOUND), CODE_DATA_LOSS);
    return error;
}

struct error *
export_start(struct engine *engine, const struct export_request *request, struct arena *arena,
             const char **operation)
{
    struct exporting *export = exporting_new(engine);
    bool is_done = false;
    struct error *error = find_snapshot(export, request->handle);
    if (!error)
        error = is_exported(engine, export->snapshot, request, &is_done);
    if (error || is_done) {
        exporting_free(export);
        *operation = "";
        return error;
    }
    set_names(export, request->handle, request->repository);
    *operation = arena_string(arena, export->operation);
    struct ops_spec spec = spec_of(export, request->handle);
    spec.in_background = request->urgency == EXPORT_IN_BACKGROUND;
    return ops_start(engine->ops, &spec);
}

/* ---- after a restart ---- */

static struct error *
resume(void *context, const operation_record *operation)
{
    struct exporting *export = exporting_new(context);
    size_t size = strlen(operation->subject);
    set_names(export, operation->subject, operation->id + size + (operation->id[size] == '.'));
    export->obstacle = find_snapshot(export, operation->subject);
    struct ops_spec spec = spec_of(export, operation->subject);
    spec.resumed = operation;
    log_info(export->engine->log, "resuming an export", LOG_TEXT("operation", operation->id));
    return ops_start(export->engine->ops, &spec);
}

struct error *
export_resume_all(struct engine *engine)
{
    static const struct ops_kind kinds[] = {{EXPORT_SNAPSHOT, resume}};
    return ops_resume(engine->ops, kinds, COUNT_OF(kinds), engine);
}
