/* SPDX-License-Identifier: Apache-2.0 */
/* Taking and deleting snapshots: see snapshot.h. */
#include <string.h>

#include "message/message_map.h"
#include "volumes/copy.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/mount_rows.h"
#include "volumes/replica.h"
#include "volumes/replica_rows.h"
#include "volumes/snapshot.h"
#include "volumes/spec.h"
#include "volumes/volume.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name

/* What is asked for. */
struct request {
    const char *name;
    const char *source_handle;
    const struct text_map *parameters;
    Skycap__Records__SnapshotRecord__Purpose purpose;
    const char *peer_node; /* of a base */
    uint64_t epoch;        /* of a volume that is MOVING; 0: it is not */
    bool is_superseded;    /* the volume */
    uint64_t wait_ms;
};

static struct error *
answer_existing(snapshot_record *record, const struct request *request, struct arena *arena,
                snapshot_record **out)
{
    struct text_map its = message_map_read(record->parameters, record->n_parameters, arena);
    if (strcmp(record->source_handle, request->source_handle) != 0 ||
        record->purpose != request->purpose)
        return error_new(CODE_ALREADY_EXISTS, "the snapshot \"%s\" exists, of another volume",
                         record->name);
    if (!spec_same_parameters(&its, request->parameters))
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
        error_free(backend_remove(engine->backend, &to)); /* the next start removes what stays */
    return error;
}

/*
 * The snapshot is complete if the back end copies instantly; otherwise its copy is started and it
 * is COPYING.
 */
static struct error *
make_snapshot(struct engine *engine, const struct request *request, struct arena *arena,
              snapshot_record **out)
{
    struct name_lock *held AUTO(name_lock_release) = NULL;
    volume_record *source;
    const char *handle = request->source_handle;
    struct error *error =
        request->is_superseded ? volume_take_superseded(engine, handle, arena, &held, &source)
        : request->epoch ? volume_take_moving(engine, handle, request->epoch, arena, &held, &source)
                         : volume_take_source(engine, handle, arena, &held, &source);
    if (error)
        return error;
    *out = snapshot_make_record(engine, request->name, source, request->parameters, arena);
    (*out)->purpose = request->purpose;
    (*out)->peer_node = (char *)request->peer_node;
    struct data from = volume_data(source);
    struct data to = snapshot_data(*out);
    if (backend_copies_instantly(engine->backend, &from, &to))
        return make_data(engine, source, *out, arena);
    error = copy_start(engine, &snapshot_rows, &(*out)->base, &from, &held);
    (*out)->state = STATE(COPYING);
    return error;
}

static struct error *
find_or_make(struct engine *engine, const struct request *request, struct arena *arena,
             snapshot_record **out)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct row existing;
    struct error *error = name_lock_take(&engine->locks, "snapshot", request->name, &lock);
    if (!error)
        error = rows_find(engine, &snapshot_rows, request->name, arena, &existing);
    if (error)
        return error;
    return existing.record
               ? answer_existing((snapshot_record *)existing.record, request, arena, out)
               : make_snapshot(engine, request, arena, out);
}

/* A client that gets an answer may write to the volume; that must not be in the snapshot. */
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

/* A node that is alone would never keep more than one. */
static struct error *
check_replicas(const struct engine *engine, const struct text_map *parameters)
{
    const char *value = text_map_find(parameters, PARAMETER_REPLICAS);
    if (!value || engine->home[0] || strcmp(value, "1") == 0)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "parameter \"" PARAMETER_REPLICAS "\": this node is in no cluster");
}

/* Holds no lock while it waits for a copy: others may ask for the snapshot or delete it. */
static struct error *
create(struct engine *engine, const struct request *request, struct arena *arena,
       snapshot_record **out)
{
    struct copy_state copy;
    struct error *error = spec_check_snapshot(request->parameters);
    if (!error)
        error = check_replicas(engine, request->parameters);
    if (!error)
        error = find_or_make(engine, request, arena, out);
    if (error || (*out)->state != STATE(COPYING))
        return error;
    error = copy_wait(engine, (*out)->handle, request->wait_ms, &copy);
    if (!error)
        error = check_is_taken(engine, *out, &copy, arena);
    return error ? error : snapshot_get_any(engine, (*out)->handle, arena, out);
}

struct error *
snapshot_create(struct engine *engine, const char *name, const char *source_handle,
                const struct text_map *parameters, uint64_t wait_ms, struct arena *arena,
                snapshot_record **out)
{
    struct request request = {name, source_handle, parameters, PURPOSE(USER), "",
                              0,    false,         wait_ms};
    struct error *error = create(engine, &request, arena, out);
    if (!error && text_map_find(parameters, PARAMETER_REPLICAS))
        replica_upkeep_wake(engine);
    return error;
}

struct error *
snapshot_create_base(struct engine *engine, const char *name, const char *source_handle,
                     const char *peer_node, uint64_t epoch, uint64_t wait_ms, struct arena *arena,
                     snapshot_record **out)
{
    struct text_map none = {0};
    struct request request = {name,      source_handle, &none, PURPOSE(BASE),
                              peer_node, epoch,         false, wait_ms};
    return create(engine, &request, arena, out);
}

struct error *
snapshot_create_last(struct engine *engine, const char *name, const char *source_handle,
                     struct arena *arena, snapshot_record **out)
{
    struct text_map none = {0};
    struct request request = {name, source_handle, &none, PURPOSE(USER), "", 0, true, 0};
    return create(engine, &request, arena, out);
}

/* ---- deleting ---- */

static struct error *
delete_row_and_data(struct engine *engine, const snapshot_record *snapshot)
{
    struct data data = snapshot_data(snapshot);
    struct error *error = rows_delete(engine, &snapshot_rows, &snapshot->base);
    if (!error)
        rows_drop_data(engine, &data);
    return error;
}

/* The snapshot's lock is held. */
static struct error *
delete_held(struct engine *engine, snapshot_record *snapshot, struct arena *arena)
{
    struct name_lock *data AUTO(name_lock_release) = NULL;
    struct error *error = NULL;
    if (snapshot->state == STATE(COPYING)) {
        error = copy_abandon(engine, snapshot->handle);
        if (!error) /* NOT_FOUND unless the copy had already ended */
            error = snapshot_get_any(engine, snapshot->handle, arena, &snapshot);
    }
    if (!error)
        error = data_lock_exclusive(engine, &snapshot_rows, snapshot->handle, &data);
    return error ? error : delete_row_and_data(engine, snapshot);
}

/*
 * A snapshot that this node took and does not know any more may have copies elsewhere: those are
 * told that it is deleted.
 */
static struct error *
remember_deletion(struct engine *engine, const char *handle)
{
    char home[HANDLE_HOME_SIZE];
    bool is_own =
        engine->home[0] && handle_read_home(handle, home) && strcmp(home, engine->home) == 0;
    return is_own ? replica_rows_mark_deleted(engine, handle) : NULL;
}

/* Those that are hidden are gone as far as users know. */
static struct error *
delete_own(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    snapshot_record *snapshot;
    struct error *error = snapshot_get(engine, handle, &arena, &snapshot);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return remember_deletion(engine, handle);
    }
    if (!error && snapshot->group_handle[0])
        error = error_new(CODE_INVALID_ARGUMENT,
                          "the snapshot belongs to the group \"%s\": delete the group instead",
                          snapshot->group_handle);
    if (!error)
        error = name_lock_take(&engine->locks, "snapshot", snapshot->name, &lock);
    if (!error)
        error = delete_held(engine, snapshot, &arena);
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
snapshot_delete(struct engine *engine, const char *handle)
{
    struct error *error = delete_own(engine, handle);
    if (!error)
        replica_tell_deletion(engine, handle);
    return error;
}
