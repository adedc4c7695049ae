/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a move at its target, and waiting for its end; move_work.c is the work. The row is
 * RECEIVING from the start, so that a repeated request finds the operation.
 */
#include <string.h>

#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/move_work.h"
#include "volumes/spec.h"
#include "volumes/volume.h"

/* ---- may it come? ---- */

/* Of a volume that is not on this node. */
static struct error *
find_source(struct engine *engine, const struct move_cluster *cluster, const char *key,
            struct arena *arena, const char **node_id)
{
    struct owner owner;
    struct error *error = cluster->owners->read(cluster->owners->context, key, &owner);
    if (error)
        return error;
    if (!owner.epoch)
        return cluster->find_home(cluster->context, key, arena, node_id);
    if (!owner.node_id[0])
        return error_new(CODE_NOT_FOUND, "the volume \"%s\" is deleted", key);
    if (strcmp(owner.node_id, engine->node_id) == 0)
        return error_new(CODE_DATA_LOSS,
                         "the volume \"%s\" should be on this node, and is not: put the node's "
                         "store back, or recover the volume",
                         key);
    *node_id = arena_string(arena, owner.node_id);
    return NULL;
}

/* Handles name the back end of their data, if a node has several. */
static struct error *
check_backend(const struct engine *engine, const char *handle)
{
    const char *mark = strrchr(handle, '-');
    if (!mark || strcmp(backend_of(engine->backend, handle)->ops->name, mark + 1) == 0)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION, "node \"%s\" has no back end \"%s\"",
                     engine->node_id, mark + 1);
}

static struct error *
check_offer(const struct engine *engine, const struct move_offer *offer, const char *node_id,
            const struct move_order *order, struct arena *arena)
{
    struct text_map parameters = volume_parameters(offer->record, arena);
    const char *mobility = text_map_find(&parameters, "mobility");
    if (order->for_publish && (!mobility || strcmp(mobility, "follow") != 0))
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is on node \"%s\", and cannot be used on node \"%s\": move "
                         "it, or set its parameter mobility to follow",
                         node_id, engine->node_id);
    if ((order->for_publish || order->not_in_use) && offer->is_in_use)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is in use on node \"%s\": unpublish it there first", node_id);
    return check_backend(engine, offer->record->handle);
}

/* A node that has snapshots of the volume may fetch only the difference: then it is not known. */
static struct error *
check_room(struct engine *engine, const struct move_offer *offer, struct arena *arena)
{
    const char *handle = offer->record->handle;
    struct backend_capacity capacity;
    struct bases_list bases;
    struct error *error = bases_find(engine, handle, arena, &bases);
    if (error || bases.count)
        return error;
    error = backend_capacity(backend_of(engine->backend, handle), &capacity);
    if (error || offer->used_bytes <= capacity.available_bytes)
        return error;
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "the volume \"%s\" takes %ju bytes, and node \"%s\" has room for %ju: make "
                     "room there, or choose another node",
                     offer->record->name, (uintmax_t)offer->used_bytes, engine->node_id,
                     (uintmax_t)capacity.available_bytes);
}

/* The caller has locked the name. A row may be left of a volume that was deleted elsewhere. */
static struct error *
check_name(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct row row;
    bool exists = true;
    struct error *error = rows_find(engine, &volume_rows, volume->name, arena, &row);
    if (error || !row.record || strcmp(rows_handle(&volume_rows, row.record), volume->handle) == 0)
        return error;
    volume_record *other = (volume_record *)row.record;
    if (other->state == VOLUME_STATE(LEFT))
        error = move_look_for(engine, other, arena, &exists);
    if (error || !exists)
        return error;
    return error_new(CODE_ALREADY_EXISTS, "node \"%s\" has another volume that is called \"%s\"",
                     engine->node_id, volume->name);
}

/*
 * The caller has locked the name. Another request may have started a move since `found` was read,
 * and that move may even be complete.
 */
static struct error *
check_unchanged(struct engine *engine, const char *handle, const volume_record *found,
                struct arena *arena)
{
    struct row row = {0};
    struct error *error =
        error_forgive(rows_get(engine, &volume_rows, handle, arena, &row), CODE_NOT_FOUND);
    if (error)
        return error;
    const volume_record *now = (const volume_record *)row.record;
    bool is_same = !now == !found;
    if (now && found)
        is_same =
            now->state == found->state && strcmp(now->move->operation, found->move->operation) == 0;
    return is_same
               ? NULL
               : error_new(CODE_ABORTED,
                           "another request for the volume \"%s\" was first; try again", handle);
}

/* ---- starting ---- */

static struct error *
start_work(struct engine *engine, volume_record *volume, const char *node_id, bool was_here,
           const struct move_order *order, struct arena *arena)
{
    char operation[BACKEND_HANDLE_SIZE], last_transfer[BACKEND_HANDLE_SIZE];
    struct store_change changes[MOVE_ROWS_CHANGES];
    size_t count;
    handle_make(engine, operation);
    handle_make(engine, last_transfer);
    uint64_t source_epoch = volume->epoch - (volume->state == VOLUME_STATE(MOVING));
    volume->state = VOLUME_STATE(RECEIVING);
    volume->epoch = 0;
    volume->n_attachments = 0;
    move_rows_set_node(volume, node_id, arena);
    volume->move->source_epoch = source_epoch;
    volume->move->operation = arena_string(arena, operation);
    volume->move->last_transfer = arena_string(arena, last_transfer);
    volume->move->was_here = was_here;
    struct text_map parameters = volume_parameters(volume, arena);
    volume->move->bytes_per_second =
        order->bytes_per_second ? order->bytes_per_second : spec_transfer_rate(&parameters);
    volume->move->not_in_use = order->not_in_use;
    move_rows_add_write(volume, arena, changes, &count);
    struct ops_spec spec = move_work_spec(engine, volume->handle);
    spec.id = operation;
    spec.subject = volume->handle;
    spec.description = arena_print(arena, "move the volume %s from node %s", volume->name, node_id);
    spec.changes = changes;
    spec.change_count = count;
    return ops_start(engine->ops, &spec);
}

/* `found` is the row that this node has of it: LEFT, or RECEIVING without an operation; or NULL. */
static struct error *
start(struct engine *engine, const struct move_order *order, const volume_record *found,
      struct arena *arena, const char **operation)
{
    const char *handle = order->handle;
    bool was_here = found && (found->state == VOLUME_STATE(LEFT) || found->move->was_here);
    const struct move_cluster *cluster;
    struct move_offer offer;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    const char *source = "", *key = found ? move_keys_print(engine, found, arena) : "";
    struct error *error = move_find_cluster(engine, &cluster);
    if (!error && !found)
        error = move_keys_find(engine, cluster, handle, arena, &key);
    if (!error)
        error = find_source(engine, cluster, key, arena, &source);
    if (!error)
        error = cluster->describe(cluster->context, source, key, arena, &offer);
    if (!error)
        error = check_offer(engine, &offer, source, order, arena);
    if (!error)
        error = check_room(engine, &offer, arena);
    if (!error)
        error = name_lock_take(&engine->locks, "volume", offer.record->name, &lock);
    if (!error)
        error = check_unchanged(engine, handle, found, arena);
    if (!error)
        error = check_name(engine, offer.record, arena);
    if (!error)
        error = start_work(engine, offer.record, source, was_here, order, arena);
    if (!error)
        *operation = offer.record->move->operation;
    return error;
}

/* ---- finding ---- */

static bool
is_running(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    operation_record *operation;
    struct error *error AUTO(error_cleanup) =
        ops_get(engine->ops, volume->move->operation, arena, &operation);
    return !error && operation->state == OPERATION_STATE(RUNNING);
}

/*
 * It may have been published elsewhere since the move began, and then this one may wait for ever. A
 * source that does not answer says nothing: the move waits for it.
 */
static struct error *
check_still_wanted(struct engine *engine, const struct move_order *order,
                   const volume_record *volume, struct arena *arena)
{
    const struct move_cluster *cluster;
    const char *source = volume->move->node_id;
    struct move_offer offer;
    if (!order->for_publish || volume->state != VOLUME_STATE(RECEIVING))
        return NULL;
    struct error *error AUTO(error_cleanup) = move_find_cluster(engine, &cluster);
    if (!error)
        error = cluster->describe(cluster->context, source, move_keys_print(engine, volume, arena),
                                  arena, &offer);
    return error ? NULL : check_offer(engine, &offer, source, order, arena);
}

/* `*operation` is NULL if the volume is here. */
static struct error *
find_or_start(struct engine *engine, const struct move_order *order, struct arena *arena,
              const char **operation, volume_record **found)
{
    struct row row = {0};
    struct error *error =
        error_forgive(rows_get(engine, &volume_rows, order->handle, arena, &row), CODE_NOT_FOUND);
    *operation = NULL;
    *found = (volume_record *)row.record;
    if (error)
        return error;
    if (!row.record || (*found)->state == VOLUME_STATE(LEFT))
        return start(engine, order, *found, arena, operation);
    if ((*found)->state == VOLUME_STATE(RECEIVING) || (*found)->state == VOLUME_STATE(INCOMING)) {
        *operation = (*found)->move->operation;
        if (is_running(engine, *found, arena) || (*found)->state == VOLUME_STATE(INCOMING))
            return check_still_wanted(engine, order, *found, arena);
        return start(engine, order, *found, arena, operation);
    }
    return volume_check_ready(*found);
}

/* ---- waiting ---- */

static struct error *
wait(struct engine *engine, const char *handle, const char *operation, uint64_t wait_ms,
     struct arena *arena)
{
    operation_record *record;
    struct error *error = ops_wait(engine->ops, operation, wait_ms, arena, &record);
    if (error)
        return error_wrap(error_forgive(error, CODE_NOT_FOUND), "wait for the move");
    if (record->state == OPERATION_STATE(RUNNING))
        return error_new(CODE_ABORTED, "the volume \"%s\" is moving to node %s, %u%%; try again",
                         handle, engine->node_id, ops_percent(record));
    if (record->state == OPERATION_STATE(SUCCEEDED))
        return NULL;
    return error_new((enum code)record->error_code, "%s", record->error_message);
}

struct error *
move_receive(struct engine *engine, const struct move_order *order, uint64_t wait_ms,
             struct move_result *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *operation;
    volume_record *volume;
    *out = (struct move_result){0};
    struct error *error = find_or_start(engine, order, &arena, &operation, &volume);
    if (error)
        return error;
    out->was_there = !operation;
    if (operation)
        error = wait(engine, order->handle, operation, wait_ms, &arena);
    if (!error && operation)
        error = volume_get(engine, order->handle, &arena, &volume);
    if (!error)
        out->unavailable_ms = volume->unavailable_ms;
    return error;
}
