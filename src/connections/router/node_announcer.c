/* SPDX-License-Identifier: Apache-2.0 */
/* Stores what drivers report: see node_announcer.h. */
#include "connections/router/node_announcer.h"

#include <stdlib.h>

#include "base/memory.h"
#include "connections/config/known_facts.h"
#include "connections/forward/nodes.h"
#include "connections/forward/topology_keys.h"
#include "drivers/fact_changes.h"

#define FIRST_PAUSE_MS 500u /* after a failure */
#define LONGEST_PAUSE_MS 30000u

struct node_announcer {
    struct router *router;
    pthread_t thread;
};

static struct error *
announce_node(const struct router *router, const struct connection_set *set, struct arena *arena)
{
    struct error *error = topology_keys_claim(router, set, arena);
    for (size_t i = 0; i < set->count && !error; i++) {
        const struct connection *connection = set->slots[i].connection;
        if (!connection || connection->spec->driver->speaks_our_ids)
            continue;
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
        if (facts->node_id)
            error = nodes_remember(router, connection, facts->node_id, arena);
    }
    return error;
}

struct error *
node_announcer_run(const struct router *router, const struct connection_set *set,
                   struct arena *arena)
{
    struct error *error = known_facts_write(router->store, set, arena);
    if (error || !router->is_node)
        return error;
    return announce_node(router, set, arena);
}

static struct error *
announce(const struct node_announcer *announcer)
{
    struct arena arena AUTO(arena_clear);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(announcer->router->connections);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return node_announcer_run(announcer->router, set, &arena);
}

static void *
thread_main(void *argument)
{
    const struct node_announcer *announcer = argument;
    const struct router *router = announcer->router;
    uint32_t pause_ms = 0;
    uint64_t seen = 0;
    do {
        struct error *error AUTO(error_cleanup) = announce(announcer);
        if (error && !pause_ms)
            log_warn(router->log, "cannot store what drivers report; trying again",
                     LOG_TEXT("error", error->message));
        pause_ms = !error ? 0 : pause_ms ? pause_ms * 2 : FIRST_PAUSE_MS;
        if (pause_ms > LONGEST_PAUSE_MS)
            pause_ms = LONGEST_PAUSE_MS;
    } while (fact_changes_wait(router->changes, &seen, pause_ms));
    return NULL;
}

struct error *
node_announcer_open(struct router *router, struct node_announcer **out)
{
    struct node_announcer *announcer = memory_zeroed(sizeof *announcer);
    announcer->router = router;
    int failed = pthread_create(&announcer->thread, NULL, thread_main, announcer);
    if (failed) {
        free(announcer);
        return error_from_errno(failed, "start the thread that stores what drivers report");
    }
    *out = announcer;
    return NULL;
}

void
node_announcer_close(struct node_announcer *announcer)
{
    if (!announcer)
        return;
    fact_changes_stop(announcer->router->changes);
    pthread_join(announcer->thread, NULL);
    free(announcer);
}
