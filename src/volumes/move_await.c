/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits until a node that is back has compared its volumes with the registry: see move_return.c.
 * And what a node says of volumes that it does not know as long as it never has.
 */
#include <unistd.h>

#include "base/clock.h"
#include "volumes/handle.h"
#include "volumes/move.h"

#define AWAIT_MS 3000
#define AWAIT_STEP_MS 20
#define COMPARED_KEY "engine/compared" /* in the store, once it was compared */

/* Without a cluster yet, the node is away. */
static struct move_presence
find_presence(const struct engine *engine)
{
    const struct move_cluster *cluster = atomic_load(&engine->moves);
    return cluster ? cluster->presence(cluster->context)
                   : (struct move_presence){.is_away = true, .since_return_ms = UINT64_MAX};
}

bool
move_is_reconciled(struct engine *engine)
{
    struct move_presence presence = find_presence(engine);
    return !presence.is_away && atomic_load(&engine->compared_returns) == presence.returns + 1;
}

/*
 * After the start, after a return, and while the node tries to return: what it sends may have
 * arrived. A registry that is not there fails at once, and is not waited for.
 */
static bool
is_worth_waiting(const struct engine *engine)
{
    struct move_presence presence = find_presence(engine);
    return presence.is_trying || presence.since_return_ms < AWAIT_MS ||
           handle_now_ms(engine) - engine->started_ms < AWAIT_MS;
}

void
move_await_reconciled(struct engine *engine)
{
    uint64_t end_ms = clock_now_ms() + AWAIT_MS;
    while (engine->home[0] && !move_is_reconciled(engine) && is_worth_waiting(engine) &&
           clock_now_ms() < end_ms && !ops_is_stopped(engine->ops))
        usleep(AWAIT_STEP_MS * 1000);
}

/* ---- a store that was never compared ---- */

struct error *
move_read_compared(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry entry;
    bool found = false;
    struct error *error = store_find(engine->store, COMPARED_KEY, &arena, &entry, &found);
    atomic_store(&engine->knows_its_volumes, found || !engine->home[0]);
    return error;
}

struct error *
move_write_compared(struct engine *engine)
{
    static const uint8_t yes[] = {1};
    struct store_change change = {COMPARED_KEY, yes, sizeof yes, STORE_ANY};
    if (atomic_load(&engine->knows_its_volumes))
        return NULL;
    struct error *error = store_write(engine->store, &change, 1, NULL);
    if (!error)
        atomic_store(&engine->knows_its_volumes, true);
    return error;
}

struct error *
move_explain_absence(struct engine *engine, struct error *error)
{
    if (error->code != CODE_NOT_FOUND || atomic_load(&engine->knows_its_volumes))
        return error;
    error->code = CODE_UNAVAILABLE;
    return error_wrap(error, "this node has not yet compared its store with the registry");
}
