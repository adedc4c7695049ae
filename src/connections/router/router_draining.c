/* SPDX-License-Identifier: Apache-2.0 */
/* The router: whether new volumes are placed on this node. Kept in the process' own store. */
#include "connections/router/router_internal.h"

#define DRAINING_KEY "node/draining" /* exists or not */

struct error *
router_read_draining(struct router *router)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry entry;
    bool is_draining;
    struct error *error = store_find(router->store, DRAINING_KEY, &arena, &entry, &is_draining);
    if (!error)
        atomic_store(&router->is_draining, is_draining);
    return error;
}

struct error *
router_set_draining(struct router *router, bool is_draining)
{
    static const uint8_t yes[] = {1};
    struct store_change change = {DRAINING_KEY, is_draining ? yes : NULL, sizeof yes, STORE_ANY};
    struct error *error = store_write(router->store, &change, 1, NULL);
    if (error)
        return error;
    atomic_store(&router->is_draining, is_draining);
    connections_note_members(router->connections);
    return NULL;
}
