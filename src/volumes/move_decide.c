/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node does with a volume that is MOVING or INCOMING: it asks the registry, and acts only on
 * an answer that shows the epoch of its row, or a later one (rule 5). An older epoch tells nothing:
 * a swap of an earlier life of this node may still be on its way.
 */
#include <string.h>

#include "base/clock.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/volume.h"

struct error *
move_find_cluster(struct engine *engine, const struct move_cluster **out)
{
    *out = atomic_load(&engine->moves);
    if (*out)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "this node is in no cluster, or has not joined it yet");
}

/* ---- acting ---- */

struct error *
move_remove_data(struct engine *engine, const volume_record *volume, unsigned wait_ms)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct data data = volume_data(volume);
    struct error *error = data_lock_wait(engine, &volume_rows, volume->handle, wait_ms, &lock);
    return error ? error : backend_remove(engine->backend, &data);
}

/* A copy of it may be in progress. What cannot be removed now, the next start removes. */
static void
drop_data(struct engine *engine, const volume_record *volume)
{
    struct error *error AUTO(error_cleanup) = move_remove_data(engine, volume, DATA_LOCK_WAIT_MS);
    if (error)
        log_warn(engine->log, "data of a volume that is not here any more cannot be removed yet",
                 LOG_TEXT("handle", volume->handle), LOG_TEXT("error", error->message));
}

static struct error *
become_live(struct engine *engine, struct held_volume *held, struct arena *arena)
{
    volume_record *volume = held->record;
    struct data data = volume_data(volume);
    int64_t since_ns = clock_unix_ns() - (volume->move ? volume->move->begun_ns : 0);
    if (volume->state == VOLUME_STATE(INCOMING) && volume->move->begun_ns)
        volume->unavailable_ms = since_ns > 0 ? (uint64_t)since_ns / UINT64_C(1000000) : 0;
    volume->state = VOLUME_STATE(READY);
    volume->move = NULL;
    struct error *error = move_rows_write(engine, volume, arena);
    if (error)
        return error;
    struct data_note note = rows_note(&volume->base, arena);
    struct error *late AUTO(error_cleanup) =
        backend_write_note(engine->backend, &data, note.bytes, note.size);
    if (late) /* upkeep writes it again */
        log_warn(engine->log, "the note of a volume is old", LOG_TEXT("handle", volume->handle),
                 LOG_TEXT("error", late->message));
    log_info(engine->log, "a volume is this node's", LOG_TEXT("handle", volume->handle),
             LOG_NUMBER("epoch", (int64_t)volume->epoch));
    return NULL;
}

/* The row stays, to tell where the volume is, if the volume has been usable here. */
struct error *
move_leave_held(struct engine *engine, struct held_volume *held, const struct owner *owner,
                struct arena *arena)
{
    volume_record *volume = held->record;
    bool may_be_new =
        volume->state == VOLUME_STATE(INCOMING) || volume->state == VOLUME_STATE(SUPERSEDED);
    bool was_here = !may_be_new || volume->move->was_here;
    volume->state = VOLUME_STATE(LEFT);
    volume->epoch = owner->epoch;
    volume->n_attachments = 0;
    move_rows_set_node(volume, owner->node_id, arena);
    struct error *error = was_here && owner->node_id[0] ? move_rows_write(engine, volume, arena)
                                                        : move_rows_delete(engine, volume, arena);
    if (error)
        return error;
    log_info(engine->log, "a volume is another node's", LOG_TEXT("handle", volume->handle),
             LOG_TEXT("node", owner->node_id), LOG_NUMBER("epoch", (int64_t)owner->epoch));
    drop_data(engine, volume);
    return NULL;
}

/* What cannot be removed now, move_upkeep.c removes. */
static struct error *
become_gone(struct engine *engine, struct held_volume *held, struct arena *arena)
{
    volume_record *volume = held->record;
    volume->state = VOLUME_STATE(GONE);
    volume->n_attachments = 0;
    move_rows_set_node(volume, "", arena);
    bases_drop_of(engine, volume->handle);
    struct error *error = move_rows_write(engine, volume, arena);
    if (!error)
        drop_data(engine, volume);
    return error;
}

static struct error *
act(struct engine *engine, struct held_volume *held, const struct owner *owner, struct arena *arena,
    enum move_outcome *out)
{
    bool is_this_epoch = owner->epoch == held->record->epoch;
    if (strcmp(owner->node_id, engine->node_id) == 0) {
        *out = MOVE_HERE;
        held->record->epoch = owner->epoch; /* later after a recovery that was given up */
        return become_live(engine, held, arena);
    }
    if (is_this_epoch && move_rows_is_deletion(held->record) && !owner->node_id[0]) {
        *out = MOVE_DELETED;
        return become_gone(engine, held, arena);
    }
    *out = MOVE_AWAY;
    return move_is_superseding(held->record, owner)
               ? move_supersede_held(engine, held, owner, arena)
               : move_leave_held(engine, held, owner, arena);
}

/* ---- asking ---- */

static void
set_owner(struct owner *owner, const char *node_id, uint64_t epoch)
{
    *owner = (struct owner){.epoch = epoch};
    strncat(owner->node_id, node_id, sizeof owner->node_id - 1);
}

static struct error *
ask(struct engine *engine, const struct move_cluster *cluster, const volume_record *volume,
    const char *key, enum move_request request)
{
    struct owner from, to;
    bool is_source = volume->state == VOLUME_STATE(MOVING);
    const char *source = is_source ? engine->node_id : volume->move->node_id;
    if (request == MOVE_ASK_NOTHING)
        return NULL;
    if (request == MOVE_ASK_SWAP && is_source && !move_rows_is_deletion(volume))
        return NULL; /* only the target asks for it: rule 4 */
    if (request == MOVE_ASK_GIVE_UP && move_rows_is_deletion(volume))
        return NULL;
    set_owner(&from, volume->epoch > 1 ? source : "", volume->epoch - 1);
    set_owner(&to,
              request == MOVE_ASK_GIVE_UP ? source
              : is_source                 ? ""
                                          : engine->node_id,
              volume->epoch);
    if (move_is_recovery(volume))
        to.recovered_epoch = volume->epoch;
    return cluster->owners->swap(cluster->owners->context, key, &from, &to);
}

static bool
is_decided(const volume_record *volume, enum move_outcome *out)
{
    switch (volume->state) {
    case VOLUME_STATE(READY):
    case VOLUME_STATE(COPYING):
    case VOLUME_STATE(LOST):
        *out = MOVE_HERE;
        return true;
    case VOLUME_STATE(LEFT):
    case VOLUME_STATE(SUPERSEDED):
        *out = MOVE_AWAY;
        return true;
    case VOLUME_STATE(GONE):
        *out = MOVE_DELETED;
        return true;
    case VOLUME_STATE(RECEIVING):
        *out = MOVE_UNDECIDED;
        return true;
    default:
        return false;
    }
}

struct error *
move_decide_held(struct engine *engine, struct held_volume *held, enum move_request request,
                 struct arena *arena, enum move_outcome *out)
{
    const struct move_cluster *cluster;
    struct owner owner;
    if (is_decided(held->record, out))
        return NULL;
    *out = MOVE_UNDECIDED;
    struct error *error = move_find_cluster(engine, &cluster);
    if (error)
        return error;
    const char *key = move_keys_print(engine, held->record, arena);
    struct error *refused AUTO(error_cleanup) = ask(engine, cluster, held->record, key, request);
    error = cluster->owners->read(cluster->owners->context, key, &owner);
    if (error)
        return error;
    if (owner.epoch >= held->record->epoch)
        return act(engine, held, &owner, arena, out);
    return refused ? STEAL(refused) : NULL;
}

struct error *
move_decide(struct engine *engine, const char *key, enum move_request request,
            enum move_outcome *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    *out = MOVE_UNDECIDED;
    struct error *error = move_keys_take(engine, key, &arena, &held);
    return error ? error : move_decide_held(engine, &held, request, &arena, out);
}
