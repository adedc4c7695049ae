/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning to fetch a copy of another node's snapshot: see replica.h. */
#include <string.h>

#include "volumes/handle.h"
#include "volumes/move_cluster.h"
#include "volumes/replica.h"
#include "volumes/replica_work.h"
#include "volumes/snapshot.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name

/* ---- what the others say ---- */

/* Of a node with a copy, while the origin does not answer. Takes its error. */
static struct error *
ask_holders(struct engine *engine, const struct replica_cluster *cluster, const char *handle,
            struct error *error, struct arena *arena, snapshot_record **out)
{
    const char *const *ids;
    size_t count;
    struct error *failure AUTO(error_cleanup) =
        cluster->holders(cluster->context, handle, arena, &ids, &count);
    for (size_t i = 0; !failure && i < count; i++) {
        struct error *none AUTO(error_cleanup) =
            strcmp(ids[i], engine->node_id) == 0
                ? error_new(CODE_NOT_FOUND, "this node itself")
                : cluster->describe(cluster->context, ids[i], handle, arena, out);
        if (none)
            continue;
        error_free(error);
        return NULL;
    }
    return error;
}

static bool
is_unreachable(const struct error *error)
{
    return error->code == CODE_UNAVAILABLE || error->code == CODE_DEADLINE_EXCEEDED;
}

static struct error *
check_handle(const char *handle)
{
    char home[HANDLE_HOME_SIZE];
    if (handle_read_home(handle, home))
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "the snapshot \"%s\" was taken before its node joined the cluster, and cannot "
                     "be copied to other nodes: restore it, and take a snapshot of that",
                     handle);
}

/* The origin, which remembers that this node fetches a copy; else a node with a copy. */
static struct error *
find_snapshot(struct engine *engine, const struct replica_cluster *cluster, const char *handle,
              struct arena *arena, snapshot_record **out)
{
    const struct move_cluster *moves = atomic_load(&engine->moves);
    const char *origin = "";
    struct error *error = check_handle(handle);
    if (error)
        return error;
    error = moves->find_home(moves->context, handle, arena, &origin);
    if (!error && strcmp(origin, engine->node_id) == 0)
        return error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", handle);
    if (!error)
        error = cluster->enroll(cluster->context, origin, handle, REPLICA_RECEIVING, arena, out);
    if (error && is_unreachable(error))
        error = ask_holders(engine, cluster, handle, error, arena, out);
    if (!error && !snapshot_is_replica(*out))
        (*out)->peer_node = (char *)origin;
    return error;
}

/* ---- the row ---- */

static void
fill_record(snapshot_record *record, const char *operation, struct arena *arena)
{
    if (!snapshot_is_replica(record))
        record->origin_name = record->name;
    record->name = (char *)replica_name(record->source_handle, record->handle, arena);
    record->purpose = PURPOSE(REPLICA);
    record->state = STATE(COPYING);
    record->operation = arena_string(arena, operation);
    record->group_handle = "";
    record->group = NULL;
    record->kept = record->is_orphan = false;
}

/* The snapshot is here already, as the base of transfers: from now on it is a replica. */
static struct error *
promote(struct engine *engine, const struct row *row, snapshot_record *record, struct arena *arena)
{
    const snapshot_record *base = (const snapshot_record *)row->record;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct data data = snapshot_data(record);
    struct store_change old[2], new[2];
    record->state = STATE(READY);
    record->operation = "";
    rows_add_delete(&snapshot_rows, &base->base, arena, old);
    rows_add_insert(&snapshot_rows, &record->base, arena, new);
    struct store_change changes[] = {
        rows_change(&snapshot_rows, &record->base, row->revision, arena), old[1], new[1]};
    struct error *error = name_lock_take(&engine->locks, "snapshot", base->name, &lock);
    if (!error)
        error = rows_write(engine, changes, COUNT_OF(changes), NULL);
    if (error)
        return error;
    struct data_note note = rows_note(&record->base, arena);
    error = backend_write_note(engine->backend, &data, note.bytes, note.size);
    replica_work_tell(engine, record);
    return error;
}

static struct error *
start(struct engine *engine, snapshot_record *record, const char *operation, struct arena *arena)
{
    struct store_change changes[2];
    rows_add_insert(&snapshot_rows, &record->base, arena, changes);
    struct ops_spec spec = replica_work_spec(engine, record->handle);
    spec.id = operation;
    spec.subject = record->handle;
    spec.description = arena_print(arena, "copy the snapshot %s from node %s", record->origin_name,
                                   record->peer_node);
    spec.changes = changes;
    spec.change_count = COUNT_OF(changes);
    return ops_start(engine->ops, &spec);
}

/* ---- finding ---- */

static bool
is_running(struct engine *engine, const snapshot_record *replica, struct arena *arena)
{
    operation_record *operation;
    struct error *error AUTO(error_cleanup) =
        ops_get(engine->ops, replica->operation, arena, &operation);
    return !error && operation->state == OPERATION_STATE(RUNNING);
}

static struct error *
discard(struct engine *engine, struct row *row)
{
    struct data data = snapshot_data((const snapshot_record *)row->record);
    struct error *error = rows_delete(engine, &snapshot_rows, row->record);
    row->record = NULL;
    if (!error)
        rows_drop_data(engine, &data);
    return error;
}

/* What this node has of it. `*is_done`: nothing needs to be started. */
static struct error *
find_own(struct engine *engine, const char *handle, struct arena *arena, struct row *row,
         const char **operation, bool *is_done)
{
    *row = (struct row){0};
    *is_done = false;
    struct error *error =
        error_forgive(rows_get(engine, &snapshot_rows, handle, arena, row), CODE_NOT_FOUND);
    const snapshot_record *own = (const snapshot_record *)row->record;
    if (error || !own)
        return error;
    if (own->purpose == PURPOSE(BASE))
        return own->state == STATE(READY)
                   ? NULL
                   : error_new(CODE_ABORTED, "the snapshot \"%s\" is arriving; try again", handle);
    *is_done = own->state == STATE(READY);
    if (*is_done)
        return NULL;
    if (!snapshot_is_replica(own))
        return error_new(CODE_ABORTED, "the snapshot \"%s\" is not complete; try again", handle);
    *is_done = is_running(engine, own, arena);
    if (!*is_done) /* its operation could not even remove it */
        return discard(engine, row);
    *operation = own->operation;
    return NULL;
}

struct error *
replica_receive(struct engine *engine, const char *handle, uint64_t bytes_per_second,
                struct arena *arena, const char **operation)
{
    const struct replica_cluster *cluster;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct row own;
    snapshot_record *record;
    char id[BACKEND_HANDLE_SIZE];
    bool is_done = false;
    *operation = NULL;
    struct error *error = replica_find_cluster(engine, &cluster);
    if (!error)
        error = name_lock_take(&engine->locks, "replica", handle, &lock);
    if (!error)
        error = find_own(engine, handle, arena, &own, operation, &is_done);
    if (error || is_done)
        return error;
    error = find_snapshot(engine, cluster, handle, arena, &record);
    if (error)
        return error;
    handle_make(engine, id);
    fill_record(record, id, arena);
    record->bytes_per_second = bytes_per_second;
    if (own.record)
        return promote(engine, &own, record, arena);
    error = start(engine, record, id, arena);
    if (!error)
        *operation = record->operation;
    return error;
}
