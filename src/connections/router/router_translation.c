/* SPDX-License-Identifier: Apache-2.0 */
/* The router: operations of engines with the ids that the orchestrator knows. */
#include "connections/request/global_id.h"
#include "connections/router/router_internal.h"

typedef Skycap__V1__Operation operation_message;

static void
tell_id(const struct connection *connection, struct arena *arena, char **id)
{
    static const enum id_kind kinds[] = {ID_VOLUME, ID_SNAPSHOT};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *handle = ids_operation(kinds[i], *id);
        if (!handle)
            continue;
        *id = global_id_print(kinds[i], connection->spec->name, handle, arena);
        return;
    }
}

static void
tell_node(const struct router *router, const struct connection *connection, struct arena *arena,
          operation_message *message)
{
    if (!router->cluster)
        return;
    message->node_id = (char *)router->node_id;
    if (!connection || !connection->node_address)
        return;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    message->node_id = arena_string(arena, facts->node_id ? facts->node_id : "");
}

void
router_translate_operation(const struct router *router, const struct connection *connection,
                           struct arena *arena, operation_message *message)
{
    tell_node(router, connection, arena, message);
    if (!connection)
        return;
    tell_id(connection, arena, &message->id);
    tell_id(connection, arena, &message->subject);
}

void
router_translate_exports(Skycap__V1__SnapshotInfo *info, struct arena *arena)
{
    struct global_id parts;
    if (!info->snapshot || !global_id_parse(ID_SNAPSHOT, info->snapshot->snapshot_id, &parts))
        return;
    for (size_t i = 0; i < info->n_exports; i++) {
        char **id = &info->exports[i]->operation;
        const char *operation = ids_operation(ID_SNAPSHOT, *id);
        if (operation)
            *id = global_id_print(ID_SNAPSHOT, parts.connection, operation, arena);
    }
}
