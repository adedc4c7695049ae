/* SPDX-License-Identifier: Apache-2.0 */
/* Long copies: see copy.h. */
#include "volumes/copy.h"

#include <stdlib.h>

#include "base/memory.h"
#include "message/message_bytes.h"
#include "message/message_map.h"
#include "volumes/bases.h"
#include "volumes/copy_cursor.h"
#include "volumes/data_lock.h"
#include "volumes/export_position.h"
#include "volumes/freeze.h"
#include "volumes/held.h"
#include "volumes/import.h"
#include "volumes/mount_rows.h"
#include "volumes/pull_any.h"
#include "volumes/remote_data.h"
#include "volumes/snapshot.h"
#include "volumes/spec.h"
#include "volumes/unchanged.h"
#include "volumes/volume.h"

/* A copy in progress. */
struct copy {
    struct engine *engine;
    struct arena arena;
    const struct row_kind *kind;
    ProtobufCMessage *record; /* with the state READY; NULL: there is no row */
    struct data from;
    struct name_lock *source;
    struct error *obstacle;   /* why the copy cannot be made */
    const char *fetched;      /* of a copy that has ended: the snapshot on another node; or NULL */
    const char *fetched_from; /* with it: the node */
    bool is_kept;             /* with it: this node has it too */
    const char *position;     /* of a copy that has ended: the row with its position; or NULL */
    bool is_watched;          /* the source is a tree that must not change during the copy */
    struct unchanged before;
    struct copy_cursor cursor;
};

/* ---- the copy ---- */

static struct copy *
copy_new(struct engine *engine, const struct row_kind *kind)
{
    struct copy *copy = memory_zeroed(sizeof *copy);
    copy->engine = engine;
    copy->kind = kind;
    copy->cursor.engine = engine;
    arena_init(&copy->arena, NULL, 0, SIZE_MAX);
    return copy;
}

static void
copy_free(void *context)
{
    struct copy *copy = context;
    const struct remote_data *remote = atomic_load(&copy->engine->remote);
    if (copy->fetched && remote)
        (copy->is_kept ? remote->keep : remote->close)(remote->context, copy->fetched_from,
                                                       copy->fetched);
    if (copy->is_kept)
        bases_tidy(copy->engine);
    name_lock_release(&copy->source);
    error_free(copy->obstacle);
    arena_clear(&copy->arena);
    free(copy);
}

/* Records of both kinds use the same numbers for their states. */
static void
set_state(const struct copy *copy, bool is_ready)
{
    if (copy->kind == &snapshot_rows)
        ((snapshot_record *)copy->record)->state =
            is_ready ? SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY
                     : SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__COPYING;
    else
        ((volume_record *)copy->record)->state =
            is_ready ? SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY
                     : SKYCAP__RECORDS__VOLUME_RECORD__STATE__COPYING;
}

static struct data
target_of(const struct copy *copy)
{
    return copy->kind == &snapshot_rows ? snapshot_data((const snapshot_record *)copy->record)
                                        : volume_data((const volume_record *)copy->record);
}

static struct data_settings
settings_of(struct copy *copy)
{
    if (copy->kind == &volume_rows)
        return volume_settings((const volume_record *)copy->record, &copy->arena);
    return (struct data_settings){
        .size_bytes = (uint64_t)((const snapshot_record *)copy->record)->size_bytes};
}

/* ---- a source that is written to meanwhile ---- */

/* Reading the blocks of a mounted file system one by one would give a corrupt copy. */
static bool
must_be_frozen(const struct copy *copy, const struct data *to)
{
    return copy->from.kind == KIND_IMAGE && copy->from.role == ROLE_VOLUME &&
           !backend_cuts_images(copy->engine->backend, &copy->from, to);
}

/*
 * Keeps the lock of a source that is in use. A source that is not in use cannot be mounted before
 * the copy ends: see node/stage.c.
 */
static struct error *
freeze_source(struct copy *copy, struct held_volume *source, struct freeze **out)
{
    struct error *error =
        held_take(copy->engine, copy->from.handle, DATA_LOCK_WAIT_MS, &copy->arena, source);
    if (!error)
        error = freeze_begin(copy->engine, &source->record, 1, out);
    if (!error && !freeze_is_needed(*out))
        held_release(source);
    return error;
}

struct frozen_copy {
    const struct progress *progress;
    struct freeze *freeze;
};

static void
report(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct progress *progress = ((struct frozen_copy *)context)->progress;
    progress->report(progress->context, done_bytes, total_bytes);
}

static bool
is_cancelled(void *context)
{
    const struct frozen_copy *copy = context;
    return freeze_is_over(copy->freeze) || copy->progress->cancelled(copy->progress->context);
}

static struct error *
copy_data(struct copy *copy, const struct data *to, const struct progress *progress)
{
    struct data_settings settings = settings_of(copy);
    settings.note = rows_note(copy->record, &copy->arena);
    return backend_copy(copy->engine->backend, &copy->from, to, &settings, progress);
}

/* A part that was copied during one freeze does not fit to one of another. */
static struct error *
copy_during_freeze(struct copy *copy, const struct data *to, const struct progress *progress,
                   struct freeze *freeze)
{
    struct progress anew;
    struct frozen_copy context = {.progress = progress, .freeze = freeze};
    struct error *error = progress_begin_anew(progress, &anew);
    return error ? error : copy_data(copy, to, &(struct progress){report, is_cancelled, &context});
}

static struct error *
copy_frozen_data(struct copy *copy, const struct data *to, const struct progress *progress)
{
    struct held_volume source AUTO(held_release) = {0};
    struct freeze *freeze = NULL;
    struct error *error = freeze_source(copy, &source, &freeze);
    if (error)
        return error;
    /* From here on, copy_wait may report that the copy has begun. */
    progress->report(progress->context, progress->position ? progress->position->done_bytes : 0,
                     settings_of(copy).size_bytes);
    error = freeze_is_needed(freeze) ? copy_during_freeze(copy, to, progress, freeze)
                                     : copy_data(copy, to, progress);
    struct error *over = freeze_end(freeze);
    if (!over)
        return error;
    if (source.record)
        freeze_remember_slow(copy->engine, &source.record, 1);
    error_free(error); /* it says that the copy was cancelled */
    return over;
}

/* ---- a tree that is copied file by file ---- */

static bool
is_copied_by_files(const struct copy *copy, const struct data *to)
{
    return copy->from.kind == KIND_TREE && copy->from.role == ROLE_VOLUME &&
           !backend_copies_instantly(copy->engine->backend, &copy->from, to);
}

static bool
may_be_torn(struct copy *copy)
{
    const snapshot_record *snapshot = (const snapshot_record *)copy->record;
    const volume_record *volume = (const volume_record *)copy->record;
    struct text_map parameters =
        copy->kind == &snapshot_rows
            ? message_map_read(snapshot->parameters, snapshot->n_parameters, &copy->arena)
            : message_map_read(volume->parameters, volume->n_parameters, &copy->arena);
    return spec_accepts_torn_copies(&parameters);
}

/* The handle of the source on another node; "": it is on this one. */
static const char *
remote_snapshot(const struct copy *copy)
{
    return copy->kind == &volume_rows ? ((const volume_record *)copy->record)->remote_snapshot : "";
}

static bool
is_import(const struct copy *copy)
{
    return copy->kind == &volume_rows && import_is_running((const volume_record *)copy->record);
}

/* Called when the copy is requested. Copies from other nodes are copies of snapshots. */
static struct error *
watch_tree(struct copy *copy)
{
    struct data to = target_of(copy);
    if (remote_snapshot(copy)[0] || is_import(copy))
        return NULL;
    copy->is_watched = is_copied_by_files(copy, &to) && !may_be_torn(copy);
    return copy->is_watched ? unchanged_begin(copy->engine, &copy->from, &copy->before) : NULL;
}

/* Does not retry: a snapshot must not contain what was written after the request was answered. */
static struct error *
copy_watched_tree(struct copy *copy, const struct data *to, const struct progress *progress)
{
    bool is_same = true;
    struct error *error = copy_data(copy, to, progress);
    if (!error)
        error = unchanged_check(&copy->before, &is_same);
    return error || is_same ? error : unchanged_refuse(&copy->from);
}

static void
forget_remote(volume_record *record)
{
    record->remote_snapshot = record->remote_node = record->remote_base = "";
    record->remote_source = NULL;
}

/* Until now the note said where the data comes from, so that nobody takes it for complete. */
static struct error *
write_final_note(struct copy *copy, const struct data *to)
{
    volume_record final = *(volume_record *)copy->record;
    Skycap__Records__ImportRecord import;
    forget_remote(&final);
    if (final.import) {
        import = *final.import;
        import.importing = false;
        final.import = &import;
    }
    struct data_note note = rows_note(&final.base, &copy->arena);
    return backend_write_note(copy->engine->backend, to, note.bytes, note.size);
}

static void
keep_base(void *context)
{
    struct copy *copy = context;
    const volume_record *record = (const volume_record *)copy->record;
    struct data from = volume_data(record);
    copy->is_kept =
        record->remote_source && bases_keep_received(copy->engine, record->remote_source, &from);
}

static struct error *
pull(struct copy *copy, const struct data *to, const struct progress *progress)
{
    struct data_settings settings = settings_of(copy);
    settings.note = rows_note(copy->record, &copy->arena);
    volume_record *record = (volume_record *)copy->record;
    const char *node_id;
    struct text_map parameters =
        message_map_read(record->parameters, record->n_parameters, &copy->arena);
    struct pull_request request = {.node_id = record->remote_node,
                                   .snapshot = record->remote_snapshot,
                                   .base = record->remote_base,
                                   .start = PULL_NEW,
                                   .to = to,
                                   .settings = &settings,
                                   .bytes_per_second = spec_transfer_rate(&parameters),
                                   .arrived = keep_base,
                                   .context = copy};
    struct error *error = pull_any(copy->engine, &request, progress, &copy->arena, &node_id);
    record->remote_node = (char *)node_id;
    return error ? error : write_final_note(copy, to);
}

static struct error *
import(struct copy *copy, const struct data *to, const struct progress *progress)
{
    struct data_settings settings = settings_of(copy);
    settings.note = rows_note(copy->record, &copy->arena);
    struct error *error =
        import_data(copy->engine, (const volume_record *)copy->record, &settings, progress);
    return error ? error : write_final_note(copy, to);
}

static struct error *
run(void *context, const struct progress *progress)
{
    struct copy *copy = context;
    if (copy->obstacle)
        return STEAL(copy->obstacle);
    if (progress->cancelled(progress->context))
        return error_new(CODE_CANCELLED, "the copy was cancelled before it began");
    struct data to = target_of(copy);
    if (remote_snapshot(copy)[0])
        return pull(copy, &to, progress);
    if (is_import(copy))
        return import(copy, &to, progress);
    if (copy->is_watched)
        return copy_watched_tree(copy, &to, progress);
    struct progress own = copy_cursor_progress(&copy->cursor, &copy->from, progress);
    return must_be_frozen(copy, &to) ? copy_frozen_data(copy, &to, &own)
                                     : copy_data(copy, &to, &own);
}

/* The row forgets the other node, and afterwards that forgets the copy: copy_free. */
static void
settle_remote(struct copy *copy, const struct data *to, struct arena *arena,
              struct ops_changes *out)
{
    volume_record *record = (volume_record *)copy->record;
    copy->fetched = record->remote_snapshot;
    copy->fetched_from = record->remote_node;
    forget_remote(record);
    copy->position = pull_row(to, arena);
    out->items[out->count++] = (struct store_change){copy->position, NULL, 0, STORE_ANY};
}

static void
settle_import(struct copy *copy, const struct data *to, struct arena *arena,
              struct ops_changes *out)
{
    copy->position = import_position_row(to->handle, arena);
    ((volume_record *)copy->record)->import->importing = false;
    out->items[out->count++] = (struct store_change){copy->position, NULL, 0, STORE_ANY};
}

/*
 * Data that is being removed must not be taken for the beginning of a copy after a crash, so the
 * position goes first. What stays here has no row soon, and the next start removes it.
 */
static void
drop_data(struct copy *copy, const struct data *to)
{
    struct store_change position = {copy->position, NULL, 0, STORE_ANY};
    struct error *error AUTO(error_cleanup) =
        copy->position ? store_write(copy->engine->store, &position, 1, NULL) : NULL;
    if (!error)
        rows_drop_data(copy->engine, to);
}

/*
 * After a failure, removes the data before the row: nobody expects data while the row is COPYING.
 */
static void
settle(void *context, const struct error *result, struct arena *arena, struct ops_changes *out)
{
    struct copy *copy = context;
    if (!copy->record)
        return;
    struct data to = target_of(copy);
    if (remote_snapshot(copy)[0])
        settle_remote(copy, &to, arena, out);
    if (is_import(copy))
        settle_import(copy, &to, arena, out);
    if (!result) {
        /* Nobody else changes a row in the state COPYING. */
        out->items[out->count++] = rows_change(copy->kind, copy->record, STORE_ANY, arena);
        return;
    }
    drop_data(copy, &to);
    rows_add_delete(copy->kind, copy->record, arena, &out->items[out->count]);
    out->count += 2;
}

static struct ops_spec
spec_of(struct copy *copy)
{
    bool is_snapshot = copy->kind == &snapshot_rows;
    return (struct ops_spec){
        .kind = is_snapshot       ? COPY_SNAPSHOT
                : is_import(copy) ? IMPORT_SNAPSHOT
                                  : COPY_VOLUME,
        .units = "bytes",
        .work = {copy, run, settle, copy_free},
    };
}

static const char *
describe(struct copy *copy)
{
    if (is_import(copy)) {
        const Skycap__Records__ImportRecord *from = ((const volume_record *)copy->record)->import;
        return arena_print(&copy->arena, "import the snapshot %.12s of the repository %s", from->id,
                           from->repository);
    }
    return arena_print(&copy->arena, "copy the %s %s",
                       copy->from.role == ROLE_SNAPSHOT ? "snapshot" : "volume", copy->from.handle);
}

struct error *
copy_start(struct engine *engine, const struct row_kind *kind, const ProtobufCMessage *record,
           const struct data *from, struct name_lock **source)
{
    struct copy *copy = copy_new(engine, kind);
    struct store_change changes[2];
    size_t size;
    uint8_t *bytes = rows_pack(record, &copy->arena, &size);
    copy->record = message_bytes_unpack(kind->type, bytes, size, &copy->arena);
    copy->from = *from;
    copy->source = STEAL(*source);
    set_state(copy, false);
    rows_add_insert(kind, copy->record, &copy->arena, changes);
    set_state(copy, true);
    struct error *error = watch_tree(copy);
    if (error) {
        copy_free(copy);
        return error;
    }
    struct data to = target_of(copy);
    struct ops_spec spec = spec_of(copy);
    spec.id = spec.subject = to.handle;
    spec.description = describe(copy);
    spec.changes = changes;
    spec.change_count = COUNT_OF(changes);
    return ops_start(engine->ops, &spec);
}

/* ---- after a restart ---- */

/* Finds the source of the copy and locks its data. */
static struct error *
find_source(struct copy *copy, const struct row_kind *kind, const char *handle)
{
    struct row row;
    struct error *error = data_lock_shared(copy->engine, kind, handle, &copy->source);
    if (!error)
        error = rows_get(copy->engine, kind, handle, &copy->arena, &row);
    if (error)
        return error_wrap(error, "the source of the copy");
    copy->from = kind == &snapshot_rows ? snapshot_data((snapshot_record *)row.record)
                                        : volume_data((volume_record *)row.record);
    return NULL;
}

static struct error *
find_recorded_source(struct copy *copy)
{
    if (copy->kind == &snapshot_rows)
        return find_source(copy, &volume_rows, ((snapshot_record *)copy->record)->source_handle);
    if (remote_snapshot(copy)[0] || is_import(copy))
        return NULL;
    const Csi__V1__VolumeContentSource *source = ((volume_record *)copy->record)->source;
    if (!source)
        return error_new(CODE_NOT_FOUND, "the row of the copy names no source");
    return source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT
               ? find_source(copy, &snapshot_rows, source->snapshot->snapshot_id)
               : find_source(copy, &volume_rows, source->volume->volume_id);
}

/*
 * A snapshot may have been reported before its copy ended, and is of that instant. It can be copied
 * again only if nobody can have written to the source since. That is so for an image that was not
 * in use when the copy began: it cannot be mounted before the copy ends (stage.c).
 */
static struct error *
check_instant(struct copy *copy)
{
    struct data to = target_of(copy);
    struct mount_list uses = {0};
    struct error *error = NULL;
    if (copy->kind != &snapshot_rows)
        return NULL;
    if (must_be_frozen(copy, &to)) {
        error = mount_rows_list(copy->engine, copy->from.handle, &copy->arena, &uses);
        if (error || !uses.count)
            return error;
    }
    return error_new(CODE_FAILED_PRECONDITION,
                     "the copy was interrupted, and the volume may have been written "
                     "to since: take the snapshot again");
}

static bool
is_obstacle(const struct error *error)
{
    return error->code == CODE_NOT_FOUND || error->code == CODE_FAILED_PRECONDITION;
}

static struct error *
resume(struct engine *engine, const struct row_kind *kind, const operation_record *operation)
{
    struct copy *copy = copy_new(engine, kind);
    struct row row;
    struct error *error = rows_get(engine, kind, operation->subject, &copy->arena, &row);
    if (!error) {
        copy->record = row.record;
        set_state(copy, true);
        error = find_recorded_source(copy);
    }
    if (!error)
        copy_cursor_read(&copy->cursor, operation, &copy->from);
    if (!error)
        error = check_instant(copy);
    if (!error)
        error = watch_tree(copy);
    if (error && !is_obstacle(error)) {
        copy_free(copy);
        return error; /* the next start may be able to read it */
    }
    copy->obstacle = error;
    log_info(engine->log, "resuming a copy", LOG_TEXT("handle", operation->subject));
    struct ops_spec spec = spec_of(copy);
    spec.id = operation->id;
    spec.resumed = operation;
    return ops_start(engine->ops, &spec);
}

static struct error *
resume_volume(void *engine, const operation_record *operation)
{
    return resume(engine, &volume_rows, operation);
}

static struct error *
resume_snapshot(void *engine, const operation_record *operation)
{
    return resume(engine, &snapshot_rows, operation);
}

struct error *
copy_resume_all(struct engine *engine)
{
    static const struct ops_kind kinds[] = {
        {COPY_VOLUME, resume_volume},
        {COPY_SNAPSHOT, resume_snapshot},
        {IMPORT_SNAPSHOT, resume_volume},
    };
    return ops_resume(engine->ops, kinds, COUNT_OF(kinds), engine);
}
