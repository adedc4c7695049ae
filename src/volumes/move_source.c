/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a move: see move.h. */
#include <string.h>

#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/volume.h"

/* Whether the changes of a volume since a snapshot of it can be told; the snapshot is instant. */
static bool
has_differences(struct engine *engine, const volume_record *volume)
{
    struct data data = volume_data(volume);
    const struct backend *backend = backend_of(engine->backend, data.handle);
    return backend_copies_instantly(engine->backend, &data, &data) &&
           (data.kind == KIND_IMAGE ? backend->ops->extents != NULL
                                    : strcmp(backend->ops->name, "btrfs") == 0);
}

/* 0: unknown. On plain directories files would have to be counted, which may take long. */
static uint64_t
measure(struct engine *engine, const volume_record *volume)
{
    struct data data = volume_data(volume);
    struct data_usage usage = {0};
    const char *backend = backend_of(engine->backend, data.handle)->ops->name;
    if (data.kind == KIND_TREE && strcmp(backend, "btrfs") != 0 && strcmp(backend, "xfs") != 0)
        return 0;
    struct error *error AUTO(error_cleanup) =
        usage_cache_measure(&engine->usages, engine->backend, &data, volume->size_bytes, &usage);
    return error || usage.used_bytes == DATA_USAGE_UNKNOWN ? 0 : usage.used_bytes;
}

struct error *
move_describe(struct engine *engine, const char *key, struct arena *arena, struct move_offer *out)
{
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = move_keys_take(engine, key, arena, &held);
    if (!error && held.record->state != VOLUME_STATE(MOVING))
        error = volume_check_ready(held.record);
    if (!error && held.record->ephemeral)
        error = error_new(CODE_FAILED_PRECONDITION, "an inline volume cannot move");
    if (error)
        return error;
    struct error *use = volume_check_unused(engine, held.record, arena);
    move_keys_set_home(engine, held.record, arena);
    out->record = held.record;
    out->has_differences = has_differences(engine, held.record);
    out->is_in_use = use != NULL;
    out->used_bytes = measure(engine, held.record);
    return error_forgive(use, CODE_FAILED_PRECONDITION);
}

/*
 * The registry must show what the row says, or a later epoch of this node, after a recovery that
 * was given up. It is asked before the volume becomes unavailable.
 */
static struct error *
check_owner(const struct engine *engine, const struct move_cluster *cluster, volume_record *volume,
            struct arena *arena)
{
    struct owner owner;
    struct error *error = cluster->owners->read(cluster->owners->context,
                                                move_keys_print(engine, volume, arena), &owner);
    if (error)
        return error;
    if (owner.epoch >= volume->epoch &&
        (!owner.epoch || strcmp(owner.node_id, engine->node_id) == 0)) {
        volume->epoch = owner.epoch;
        return NULL;
    }
    return error_new(CODE_INTERNAL,
                     "the volume \"%s\" is here at epoch %ju, but the registry says that node "
                     "\"%s\" has it at epoch %ju",
                     volume->handle, (uintmax_t)volume->epoch, owner.node_id,
                     (uintmax_t)owner.epoch);
}

/* A copy of the volume that is being made needs the data, which the move removes from here. */
static struct error *
write_moving(struct engine *engine, struct held_volume *held, const char *to, struct arena *arena)
{
    const struct move_cluster *cluster;
    struct name_lock *data AUTO(name_lock_release) = NULL;
    struct error *error = volume_check_unused(engine, held->record, arena);
    if (!error)
        error = data_lock_exclusive(engine, &volume_rows, held->record->handle, &data);
    if (!error)
        error = move_find_cluster(engine, &cluster);
    if (!error)
        error = check_owner(engine, cluster, held->record, arena);
    if (!error)
        error = cluster->owners->add_member(cluster->owners->context, to);
    if (error)
        return error;
    held->record->state = VOLUME_STATE(MOVING);
    held->record->epoch++;
    move_keys_set_home(engine, held->record, arena);
    move_rows_set_node(held->record, to, arena);
    return move_rows_write(engine, held->record, arena);
}

struct error *
move_begin(struct engine *engine, const char *key, const char *to, struct arena *arena,
           volume_record **out)
{
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = move_keys_take(engine, key, arena, &held);
    if (error)
        return error;
    *out = held.record;
    if (held.record->state == VOLUME_STATE(MOVING) && strcmp(held.record->move->node_id, to) == 0)
        return NULL;
    error = volume_check_ready(held.record);
    return error ? error : write_moving(engine, &held, to, arena);
}
