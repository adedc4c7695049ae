/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a registry without data must be told (rule 9): see volumes/ownership.h. */
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"

struct claim_walk {
    struct engine *engine;
    struct error *(*take)(void *taker, const struct claim *claim);
    void *taker;
};

static bool
read_claim(const volume_record *volume, const char *key, struct claim *out)
{
    *out = (struct claim){key, CLAIM_LIVE, volume->epoch, volume->recovered_epoch,
                          volume->move ? volume->move->node_id : ""};
    switch (volume->state) {
    case VOLUME_STATE(READY):
    case VOLUME_STATE(LOST):
        return volume->epoch != 0;
    case VOLUME_STATE(MOVING):
        out->state = CLAIM_MOVING;
        return true;
    case VOLUME_STATE(INCOMING):
        out->state = CLAIM_INCOMING;
        return true;
    case VOLUME_STATE(GONE):
        out->state = CLAIM_GONE;
        return true;
    case VOLUME_STATE(LEFT):
    case VOLUME_STATE(SUPERSEDED):
        out->state = CLAIM_LEFT;
        return volume->epoch && out->node_id[0];
    default:
        return false;
    }
}

static struct error *
take_claim(void *context, const char *handle)
{
    const struct claim_walk *walk = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct claim claim;
    struct error *error = held_take_any(walk->engine, handle, DATA_LOCK_WAIT_MS, &arena, &held);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    const char *key = move_keys_print(walk->engine, held.record, &arena);
    return read_claim(held.record, key, &claim) ? walk->take(walk->taker, &claim) : NULL;
}

static struct error *
walk_claims(void *context, struct error *(*take)(void *taker, const struct claim *claim),
            void *taker)
{
    struct claim_walk walk = {context, take, taker};
    return move_rows_walk(context, take_claim, &walk);
}

struct claim_source
move_claims(struct engine *engine)
{
    return (struct claim_source){walk_claims, engine};
}
