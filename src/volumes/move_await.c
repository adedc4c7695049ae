/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until a node that is back has compared its volumes with the registry: see move_return.c. */
#include <unistd.h>

#include "base/clock.h"
#include "volumes/handle.h"
#include "volumes/move.h"

#define AWAIT_MS 3000
#define AWAIT_STEP_MS 20

bool
move_is_reconciled(struct engine *engine)
{
    const struct move_cluster *cluster = atomic_load(&engine->moves);
    uint64_t since_ms;
    return cluster && atomic_load(&engine->compared_returns) ==
                          cluster->returns(cluster->context, &since_ms) + 1;
}

/* `since_ms` is of the node's return, or 0: then the start counts. */
static bool
is_worth_waiting(const struct engine *engine)
{
    const struct move_cluster *cluster = atomic_load(&engine->moves);
    uint64_t since_ms = 0;
    if (cluster)
        cluster->returns(cluster->context, &since_ms);
    return handle_now_ms(engine) - engine->started_ms < AWAIT_MS ||
           (since_ms && clock_now_ms() - since_ms < AWAIT_MS);
}

void
move_await_reconciled(struct engine *engine)
{
    while (engine->home[0] && !move_is_reconciled(engine) && is_worth_waiting(engine) &&
           !ops_is_stopped(engine->ops))
        usleep(AWAIT_STEP_MS * 1000);
}
