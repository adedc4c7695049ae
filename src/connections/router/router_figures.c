/* SPDX-License-Identifier: Apache-2.0 */
/* The router: the figures of all engines of this process together. */
#include "connections/config/connection.h"
#include "connections/router/router_internal.h"
#include "volumes/figures.h"

static void
add(struct figures *sum, const struct figures *one)
{
    const struct backend_capacity *room = figures_room(one);
    if (room) {
        sum->pool_count = 1;
        sum->pools[0].has_room = true;
        sum->pools[0].room.total_bytes += room->total_bytes;
        sum->pools[0].room.available_bytes += room->available_bytes;
    }
    sum->is_counted &= one->is_counted;
    for (size_t i = 0; i < FIGURES_VOLUME_STATES; i++)
        sum->volumes[i] += one->volumes[i];
    for (size_t i = 0; i < FIGURES_SNAPSHOT_STATES; i++)
        sum->snapshots[i] += one->snapshots[i];
    sum->provisioned_bytes += one->provisioned_bytes;
    sum->changes += one->changes;
}

bool
router_sum_figures(struct router *router, struct figures *out)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    bool has_engine = false;
    *out = (struct figures){.is_counted = true};
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        struct figures one = {0};
        if (!connection || !connection->spec->driver->figures) {
            out->is_counted = false; /* nobody counts its volumes */
            continue;
        }
        connection->spec->driver->figures(connection->driver, &(struct figures_request){0}, &one);
        add(out, &one);
        has_engine = true;
    }
    return has_engine;
}
