/* SPDX-License-Identifier: Apache-2.0 */
/* Marks a copy whose volume another node has recovered: see move_return.c. */
#include "volumes/attached.h"
#include "volumes/move.h"
#include "volumes/move_rows.h"

bool
move_is_recovery(const volume_record *volume)
{
    return volume->state == VOLUME_STATE(INCOMING) && volume->recovered_epoch == volume->epoch;
}

/* The data of a recovery is in a snapshot. */
bool
move_is_superseding(const volume_record *volume, const struct owner *owner)
{
    return owner->recovered_epoch >= volume->epoch && !move_is_recovery(volume);
}

struct error *
move_supersede_held(struct engine *engine, struct held_volume *held, const struct owner *owner,
                    struct arena *arena)
{
    volume_record *volume = held->record;
    bool was_here = volume->state != VOLUME_STATE(INCOMING) || volume->move->was_here;
    volume->state = VOLUME_STATE(SUPERSEDED);
    volume->epoch = owner->epoch;
    volume->recovered_epoch = owner->recovered_epoch ? owner->recovered_epoch : owner->epoch;
    volume->n_attachments = 0; /* what the orchestrator says does not count any more */
    move_rows_set_node(volume, owner->node_id, arena);
    volume->move->was_here = was_here;
    struct error *error = move_rows_write(engine, volume, arena);
    if (error)
        return error;
    attached_remove(engine, volume->handle);
    log_error(engine->log,
              "another node has recovered a volume that is still here: its users must be stopped",
              LOG_TEXT("handle", volume->handle), LOG_TEXT("node", owner->node_id),
              LOG_NUMBER("epoch", (int64_t)owner->epoch));
    return NULL;
}
