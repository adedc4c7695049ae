/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: see snapshot.h. */
#include "volumes/snapshot.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "message/message_map.h"
#include "volumes/copy.h"
#include "volumes/flush.h"
#include "volumes/handle.h"
#include "volumes/mount_rows.h"
#include "volumes/spec.h"
#include "volumes/volume.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

struct data
snapshot_data(const snapshot_record *snapshot)
{
    struct data data = {.role = ROLE_SNAPSHOT};
    data.kind =
        snapshot->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE ? KIND_IMAGE : KIND_TREE;
    snprintf(data.handle, sizeof data.handle, "%s", snapshot->handle);
    return data;
}

struct error *
snapshot_get(struct engine *engine, const char *handle, struct arena *arena, snapshot_record **out)
{
    struct row row;
    struct error *error = rows_get(engine, &snapshot_rows, handle, arena, &row);
    *out = error ? NULL : (snapshot_record *)row.record;
    return error;
}

const char *
snapshot_consistency(struct engine *engine, const snapshot_record *snapshot, struct arena *arena)
{
    struct data to = snapshot_data(snapshot);
    struct data from = to;
    struct text_map parameters =
        message_map_read(snapshot->parameters, snapshot->n_parameters, arena);
    snprintf(from.handle, sizeof from.handle, "%s", snapshot->source_handle);
    bool is_torn = to.kind == KIND_TREE && spec_accepts_torn_copies(&parameters) &&
                   !backend_copies_instantly(engine->backend, &from, &to);
    return is_torn ? "files" : "instant";
}

/* ---- creating ---- */

snapshot_record *
snapshot_make_record(const struct engine *engine, const char *name, const volume_record *source,
                     const struct text_map *parameters, struct arena *arena)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snapshot_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__snapshot_record__init(record);
    record->handle = arena_alloc(arena, BACKEND_HANDLE_SIZE);
    handle_make_for(engine, backend_of(engine->backend, source->handle), record->handle);
    record->name = (char *)name;
    record->source_handle = source->handle;
    record->kind = source->kind;
    record->fs_type = source->fs_type;
    record->size_bytes = source->size_bytes;
    record->formatted_bytes = source->formatted_bytes;
    record->blank = source->blank;
    record->sector_bytes = source->sector_bytes;
    record->created_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    message_map_write(parameters, arena,
                      &skycap__records__snapshot_record__parameters_entry__descriptor,
                      &record->parameters, &record->n_parameters);
    return record;
}

struct data_note
snapshot_note(snapshot_record *snapshot, group_record *group, struct arena *arena)
{
    snapshot->group = group;
    struct data_note note = rows_note(&snapshot->base, arena);
    snapshot->group = NULL;
    return note;
}

static struct error *
answer_existing(snapshot_record *record, const char *source_handle,
                const struct text_map *parameters, struct arena *arena, snapshot_record **out)
{
    struct text_map its = message_map_read(record->parameters, record->n_parameters, arena);
    if (strcmp(record->source_handle, source_handle) != 0)
        return error_new(CODE_ALREADY_EXISTS, "the snapshot \"%s\" exists, of another volume",
                         record->name);
    if (!spec_same_parameters(&its, parameters))
        return error_new(CODE_ALREADY_EXISTS, "the snapshot \"%s\" exists with other parameters",
                         record->name);
    *out = record;
    return NULL;
}

static struct error *
make_data(struct engine *engine, const volume_record *source, const snapshot_record *record,
          struct arena *arena)
{
    struct data from = volume_data(source);
    struct data to = snapshot_data(record);
    struct data_settings settings = {.size_bytes = (uint64_t)record->size_bytes,
                                     .note = rows_note(&record->base, arena)};
    struct error *error = backend_copy(engine->backend, &from, &to, &settings, NULL);
    if (!error)
        error = rows_insert(engine, &snapshot_rows, &record->base);
    if (error)
        error_free(backend_remove(engine->backend, &to)); /* what stays, the next start sweeps */
    return error;
}

/* In an instant where the back end can; else it is begun, and is COPYING. */
static struct error *
make_snapshot(struct engine *engine, const char *name, const char *source_handle,
              const struct text_map *parameters, struct arena *arena, snapshot_record **out)
{
    struct key *held AUTO(keys_release) = NULL;
    volume_record *source;
    struct error *error = copy_hold_source(engine, &volume_rows, source_handle, &held);
    if (!error)
        error = volume_get(engine, source_handle, arena, &source);
    if (!error)
        error = volume_adopt_size(engine, source);
    if (!error)
        error = flush_volume(engine, source, arena);
    if (error)
        return error;
    *out = snapshot_make_record(engine, name, source, parameters, arena);
    struct data from = volume_data(source);
    struct data to = snapshot_data(*out);
    if (backend_copies_instantly(engine->backend, &from, &to))
        return make_data(engine, source, *out, arena);
    error = copy_start(engine, &snapshot_rows, &(*out)->base, &from, &held);
    (*out)->state = STATE(COPYING);
    return error;
}

static struct error *
find_or_make(struct engine *engine, const char *name, const char *source_handle,
             const struct text_map *parameters, struct arena *arena, snapshot_record **out)
{
    struct key *key AUTO(keys_release) = NULL;
    struct row existing;
    struct error *error = keys_take(&engine->keys, "snapshot", name, &key);
    if (!error)
        error = rows_find(engine, &snapshot_rows, name, arena, &existing);
    if (error)
        return error;
    return existing.record ? answer_existing((snapshot_record *)existing.record, source_handle,
                                             parameters, arena, out)
                           : make_snapshot(engine, name, source_handle, parameters, arena, out);
}

/* Who gets an answer may write to the volume: what is written then must not be in the snapshot. */
static struct error *
check_is_taken(struct engine *engine, const snapshot_record *snapshot,
               const struct copy_state *copy, struct arena *arena)
{
    struct mount_list uses = {0};
    if (copy->has_begun)
        return NULL;
    struct error *error = mount_rows_list(engine, snapshot->source_handle, arena, &uses);
    if (error || !uses.count)
        return error;
    return error_new(CODE_ABORTED, "the snapshot \"%s\" waits for other copies; try again",
                     snapshot->name);
}

/* While one waits for a copy anybody may ask for the snapshot, or delete it: no key is held. */
struct error *
snapshot_create(struct engine *engine, const char *name, const char *source_handle,
                const struct text_map *parameters, uint64_t wait_ms, struct arena *arena,
                snapshot_record **out)
{
    struct copy_state copy;
    struct error *error = spec_check_consistency(parameters);
    if (!error)
        error = find_or_make(engine, name, source_handle, parameters, arena, out);
    if (error || (*out)->state != STATE(COPYING))
        return error;
    error = copy_wait(engine, (*out)->handle, wait_ms, &copy);
    if (!error)
        error = check_is_taken(engine, *out, &copy, arena);
    return error ? error : snapshot_get(engine, (*out)->handle, arena, out);
}

/* ---- deleting ---- */

static struct error *
delete_row_and_data(struct engine *engine, const snapshot_record *snapshot)
{
    struct data data = snapshot_data(snapshot);
    struct error *error = rows_delete(engine, &snapshot_rows, &snapshot->base);
    if (error)
        return error;
    error = backend_remove(engine->backend, &data);
    if (error) {
        log_warn(engine->log, "data of a deleted snapshot stays until the next start",
                 LOG_TEXT("handle", data.handle), LOG_TEXT("error", error->message));
        error_free(error);
    }
    return NULL;
}

/* The snapshot's key is held. */
static struct error *
delete_held(struct engine *engine, snapshot_record *snapshot, struct arena *arena)
{
    struct key *data AUTO(keys_release) = NULL;
    struct error *error = NULL;
    if (snapshot->state == STATE(COPYING)) {
        error = copy_abandon(engine, snapshot->handle);
        if (!error) /* unless it was done before, this does not find it any more */
            error = snapshot_get(engine, snapshot->handle, arena, &snapshot);
    }
    if (!error)
        error = copy_hold_alone(engine, &snapshot_rows, snapshot->handle, &data);
    return error ? error : delete_row_and_data(engine, snapshot);
}

struct error *
snapshot_delete(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct key *key AUTO(keys_release) = NULL;
    snapshot_record *snapshot;
    struct error *error = snapshot_get(engine, handle, &arena, &snapshot);
    if (!error && snapshot->group_handle[0])
        error = error_new(CODE_INVALID_ARGUMENT,
                          "the snapshot belongs to the group \"%s\" and goes with it only",
                          snapshot->group_handle);
    if (!error)
        error = keys_take(&engine->keys, "snapshot", snapshot->name, &key);
    if (!error)
        error = delete_held(engine, snapshot, &arena);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return NULL;
    }
    return error;
}

/* ---- listing ---- */

struct error *
snapshot_list(struct engine *engine, const char *source_handle, const char *after, size_t limit,
              struct arena *arena, struct snapshot_page *out)
{
    struct row_page page;
    *out = (struct snapshot_page){0};
    /* A filter may drop any number of rows: read all, keep what fits. */
    struct error *error =
        rows_list(engine, &snapshot_rows, after, source_handle ? 0 : limit, arena, &page);
    if (error)
        return error;
    out->snapshots = arena_alloc(arena, page.count * sizeof *out->snapshots);
    for (size_t i = 0; i < page.count; i++) {
        snapshot_record *snapshot = (snapshot_record *)page.rows[i].record;
        if (source_handle && strcmp(snapshot->source_handle, source_handle) != 0)
            continue;
        if (limit && out->count == limit) {
            page.has_more = true;
            break;
        }
        out->snapshots[out->count++] = snapshot;
    }
    if (page.has_more && out->count)
        out->next = out->snapshots[out->count - 1]->handle;
    return NULL;
}
