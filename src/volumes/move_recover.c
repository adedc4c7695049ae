/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes of a lost node. Another node that has a copy of one of its snapshots can take over the
 * volume: as at the end of a move, its copy is INCOMING at the next epoch, and the registry
 * decides. Only the source has not agreed: see move_return.c for what happens when it is back.
 */
#include <string.h>

#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_rows.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define PAGE 256
#define SNAPSHOT_STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

/* ---- finding a copy ---- */

static bool
is_copy_of(const snapshot_record *snapshot, const char *volume)
{
    return snapshot->state == SNAPSHOT_STATE(READY) && snapshot->volume &&
           (strcmp(snapshot->source_handle, volume) == 0 ||
            strcmp(snapshot->volume->name, volume) == 0);
}

/* `*out` is NULL if there is none. */
static struct error *
find_newest(struct engine *engine, const char *volume, struct arena *arena, snapshot_record **out)
{
    const char *after = "";
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    *out = NULL;
    while (!error && page.has_more) {
        error = rows_list(engine, &snapshot_rows, after, PAGE, arena, &page);
        for (size_t i = 0; !error && i < page.count; i++) {
            snapshot_record *snapshot = (snapshot_record *)page.rows[i].record;
            after = snapshot->handle;
            if (is_copy_of(snapshot, volume) &&
                (!*out || snapshot->created_ns > (*out)->created_ns))
                *out = snapshot;
        }
    }
    return error;
}

static struct error *
find_owner(struct engine *engine, const struct move_cluster *cluster, const char *handle,
           struct arena *arena, struct owner *row, const char **node_id)
{
    struct error *error = cluster->owners->read(cluster->owners->context, handle, row);
    if (error)
        return error;
    if (!row->epoch)
        return cluster->find_home(cluster->context, handle, arena, node_id);
    *node_id = arena_string(arena, row->node_id);
    if (!row->node_id[0])
        return error_new(CODE_NOT_FOUND, "the volume \"%s\" is deleted", handle);
    if (strcmp(row->node_id, engine->node_id) == 0)
        return error_new(CODE_FAILED_PRECONDITION, "the volume \"%s\" is on this node", handle);
    return NULL;
}

struct error *
move_find_copy(struct engine *engine, const char *volume, struct arena *arena,
               struct move_copy *out)
{
    const struct move_cluster *cluster;
    struct owner row;
    struct error *error = find_newest(engine, volume, arena, &out->snapshot);
    if (!error && !out->snapshot)
        error = error_new(CODE_NOT_FOUND, "node \"%s\" has no copy of the volume \"%s\"",
                          engine->node_id, volume);
    if (!error)
        error = move_find_cluster(engine, &cluster);
    if (!error)
        error = find_owner(engine, cluster, out->snapshot->source_handle, arena, &row, &out->owner);
    if (!error)
        out->is_lost = cluster->is_lost(cluster->context, out->owner);
    return error;
}

/* ---- recovering ---- */

/* The volume as it was when the snapshot was taken, as the end of a move from the lost node. */
static volume_record *
make_record(const snapshot_record *snapshot, const struct owner *row, const char *lost,
            bool was_here, struct arena *arena)
{
    volume_record *record = snapshot->volume;
    record->state = VOLUME_STATE(INCOMING);
    record->epoch = record->recovered_epoch = row->epoch + 1;
    record->size_bytes = snapshot->size_bytes;
    record->formatted_bytes = snapshot->formatted_bytes;
    record->n_attachments = 0;
    record->remote_source = NULL;
    record->remote_snapshot = record->remote_node = record->remote_base = "";
    move_rows_set_node(record, lost, arena);
    record->move->was_here = was_here;
    return record;
}

static struct error *
copy_data(struct engine *engine, const snapshot_record *snapshot, const volume_record *record,
          struct arena *arena)
{
    struct data from = snapshot_data(snapshot), to = volume_data(record);
    struct data_settings settings = volume_settings(record, arena);
    settings.note = rows_note(&record->base, arena);
    struct error *error = backend_remove(engine->backend, &to);
    if (!error)
        error = backend_copy(engine->backend, &from, &to, &settings, NULL);
    return error ? error : backend_sync(engine->backend);
}

/* The volume's name is locked. */
static struct error *
check_absent(struct engine *engine, const volume_record *volume, struct arena *arena,
             bool *was_here)
{
    struct row row = {0};
    struct error *error =
        error_forgive(rows_get(engine, &volume_rows, volume->handle, arena, &row), CODE_NOT_FOUND);
    *was_here = row.record != NULL;
    if (!error && row.record && ((volume_record *)row.record)->state != VOLUME_STATE(LEFT))
        error = error_new(CODE_ABORTED, "the volume \"%s\" is moving here, or recovered already",
                          volume->handle);
    if (error)
        return error;
    error = rows_find(engine, &volume_rows, volume->name, arena, &row);
    if (!error && row.record && strcmp(rows_handle(&volume_rows, row.record), volume->handle) != 0)
        error =
            error_new(CODE_ALREADY_EXISTS, "node \"%s\" has another volume that is called \"%s\"",
                      engine->node_id, volume->name);
    return error;
}

static struct error *
take_over(struct engine *engine, const snapshot_record *snapshot, const struct owner *row,
          const char *lost, struct arena *arena)
{
    struct name_lock *name AUTO(name_lock_release) = NULL;
    struct name_lock *data AUTO(name_lock_release) = NULL;
    const struct move_cluster *cluster = atomic_load(&engine->moves);
    bool was_here;
    struct error *error = name_lock_take(&engine->locks, "volume", snapshot->volume->name, &name);
    if (!error)
        error = check_absent(engine, snapshot->volume, arena, &was_here);
    if (!error)
        error = data_lock_shared(engine, &snapshot_rows, snapshot->handle, &data);
    if (error)
        return error;
    volume_record *record = make_record(snapshot, row, lost, was_here, arena);
    error = copy_data(engine, snapshot, record, arena);
    if (!error)
        error = cluster->owners->add_member(cluster->owners->context, lost);
    return error ? error : move_rows_write(engine, record, arena);
}

static struct error *
check_copy(const snapshot_record *snapshot)
{
    if (snapshot->state == SNAPSHOT_STATE(READY) && snapshot->volume)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION, "\"%s\" is not a copy of another node's snapshot",
                     snapshot->handle);
}

struct error *
move_recover(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct move_cluster *cluster;
    struct owner row;
    const char *lost = "";
    enum move_outcome outcome;
    snapshot_record *snapshot;
    struct error *error = snapshot_get_any(engine, handle, &arena, &snapshot);
    if (!error)
        error = check_copy(snapshot);
    if (!error)
        error = move_find_cluster(engine, &cluster);
    if (!error)
        error = find_owner(engine, cluster, snapshot->source_handle, &arena, &row, &lost);
    if (!error && !cluster->is_lost(cluster->context, lost))
        error = error_new(CODE_FAILED_PRECONDITION,
                          "node \"%s\", which has the volume, is not lost: move the volume instead",
                          lost);
    if (!error)
        error = take_over(engine, snapshot, &row, lost, &arena);
    if (!error)
        error = move_decide(engine, snapshot->source_handle, MOVE_ASK_SWAP, &outcome);
    if (!error && outcome != MOVE_HERE)
        error = error_new(CODE_ABORTED, "another node has recovered the volume at the same time");
    return error;
}
