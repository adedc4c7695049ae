/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting volumes that have moved: a deletion is a move to nobody (rule 7). And what is known of
 * volumes that are not here any more.
 */
#include <string.h>

#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/volume.h"

/* Asked first: without an answer the volume would be unavailable and not deleted. */
static struct error *
check_registry(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    const struct move_cluster *cluster;
    const char *key = move_keys_print(engine, volume, arena);
    struct owner owner;
    struct error *error = move_find_cluster(engine, &cluster);
    return error ? error : cluster->owners->read(cluster->owners->context, key, &owner);
}

static struct error *
write_deletion(struct engine *engine, struct held_volume *held, struct arena *arena)
{
    volume_record *volume = held->record;
    struct name_lock *data AUTO(name_lock_release) = NULL;
    if (move_rows_is_deletion(volume))
        return NULL;
    struct error *error = check_registry(engine, volume, arena);
    if (!error && volume->state == VOLUME_STATE(READY)) /* nobody else copies what is MOVING */
        error = data_lock_exclusive(engine, &volume_rows, volume->handle, &data);
    if (error)
        return error;
    if (volume->state != VOLUME_STATE(MOVING))
        volume->epoch++;
    volume->state = VOLUME_STATE(MOVING);
    move_rows_set_node(volume, "", arena);
    return move_rows_write(engine, volume, arena);
}

struct error *
move_delete(struct engine *engine, struct held_volume *held, struct arena *arena)
{
    enum move_outcome outcome = MOVE_UNDECIDED;
    if (held->record->state == VOLUME_STATE(GONE))
        return NULL;
    struct error *error = NULL;
    if (held->record->state != VOLUME_STATE(READY) && held->record->state != VOLUME_STATE(MOVING) &&
        held->record->state != VOLUME_STATE(LOST))
        error = volume_check_ready(held->record);
    if (!error)
        error = write_deletion(engine, held, arena);
    if (!error)
        error = move_decide_held(engine, held, MOVE_ASK_SWAP, arena, &outcome);
    if (error || outcome == MOVE_DELETED)
        return error;
    if (outcome == MOVE_AWAY)
        return volume_check_ready(held->record);
    return error_new(CODE_ABORTED,
                     "the registry has not decided about the volume \"%s\"; try again",
                     held->record->handle);
}

/* ---- volumes that are not here ---- */

struct error *
move_ask(struct engine *engine, const char *key, bool is_gone, struct move_answer *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    *out = (struct move_answer){0};
    struct error *error = move_keys_take(engine, key, &arena, &held);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (held.record->state == VOLUME_STATE(LEFT) && is_gone) {
        bases_drop_of(engine, held.record->handle);
        return move_rows_delete(engine, held.record, &arena);
    }
    if (held.record->state == VOLUME_STATE(LEFT))
        return NULL;
    *out = (struct move_answer){.has_row = true,
                                .epoch = held.record->epoch,
                                .is_lost = held.record->state == VOLUME_STATE(LOST)};
    handle_read_key(move_keys_print(engine, held.record, &arena), out->home);
    return NULL;
}

struct error *
move_look_for(struct engine *engine, volume_record *volume, struct arena *arena, bool *exists)
{
    const struct move_cluster *cluster;
    struct owner owner;
    *exists = true;
    struct error *error = move_find_cluster(engine, &cluster);
    if (!error)
        error = cluster->owners->read(cluster->owners->context,
                                      move_keys_print(engine, volume, arena), &owner);
    if (error)
        return error_wrap(error, "the volume \"%s\" has moved to node %s", volume->name,
                          volume->move->node_id);
    /* Without a row in the registry the deletion has been completed: rule 12. */
    *exists = owner.epoch && owner.node_id[0];
    if (!*exists)
        return move_rows_delete(engine, volume, arena);
    move_rows_set_node(volume, owner.node_id, arena);
    return NULL;
}
