/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes: see nodes.h. */
#include "connections/forward/nodes.h"

#include <string.h>

/* `options: {node-ids: {OURS: THEIRS}}` of the connection's file. */
static const struct setting *
node_ids(const struct connection *connection)
{
    return settings_find(connection->spec->options, "node-ids");
}

static char *
row_key(const struct connection *connection, const char *node_id, struct arena *arena)
{
    return arena_print(arena, "node/%s/%s", connection->spec->name, node_id);
}

static struct error *
find_row(const struct router *router, const struct connection *connection, const char *node_id,
         struct arena *arena, char **out)
{
    struct store_entry entry;
    const char *key = row_key(connection, node_id, arena);
    *out = NULL;
    if (strlen(key) > STORE_MAX_KEY)
        return NULL;
    bool found;
    struct error *error = store_find(router->shared, key, arena, &entry, &found);
    if (found)
        *out = arena_copy(arena, entry.value, entry.value_size);
    return error;
}

bool
nodes_is_this(const struct router *router, const char *node_id)
{
    return router->is_node && strcmp(node_id, router->node_id) == 0;
}

/*
 * The driver's name for the host of a controller that is no node, where copies across connections
 * run; NULL: another node is meant, or the driver has no name for it.
 */
static char *
name_of_host(const struct router *router, const struct connection *connection, const char *node_id,
             struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    bool is_own = strcmp(node_id, router->node_id) == 0 && facts->node_id;
    return is_own ? arena_string(arena, facts->node_id) : NULL;
}

struct error *
nodes_translate_in(const struct router *router, const struct connection *connection,
                   struct arena *arena, char **node_id)
{
    if (connection->spec->driver->speaks_our_ids)
        return NULL;
    if (nodes_is_this(router, *node_id)) {
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
        if (facts->node_id) {
            *node_id = arena_string(arena, facts->node_id);
            return NULL;
        }
        if (!facts->is_known)
            return error_new(CODE_UNAVAILABLE, "connection \"%s\": %s", connection->spec->name,
                             facts->trouble);
    }
    const struct setting *written = settings_find(node_ids(connection), *node_id);
    if (written && written->kind == SETTING_TEXT) {
        *node_id = (char *)written->text;
        return NULL;
    }
    char *found;
    struct error *error = find_row(router, connection, *node_id, arena, &found);
    if (!error && !found)
        found = name_of_host(router, connection, *node_id, arena);
    if (!error && !found)
        error = error_new(CODE_NOT_FOUND,
                          "the id that the driver behind connection \"%s\" has for node \"%s\" is "
                          "unknown: add it to node-ids in the connection's file",
                          connection->spec->name, *node_id);
    if (!error)
        *node_id = found;
    return error;
}

static const char *
find_row_of(const struct store_list *rows, const char *drivers_name, size_t prefix_size)
{
    size_t size = strlen(drivers_name);
    for (size_t i = 0; i < rows->count; i++)
        if (rows->entries[i].value_size == size &&
            memcmp(rows->entries[i].value, drivers_name, size) == 0)
            return rows->entries[i].key + prefix_size;
    return NULL;
}

/* Our name, if the driver or the connection's file has it. */
static const char *
find_known(const struct router *router, const struct connection *connection,
           const char *drivers_name)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    if (router->is_node && facts->node_id && strcmp(facts->node_id, drivers_name) == 0)
        return router->node_id;
    const struct setting *map = node_ids(connection);
    for (const struct setting *s = map ? map->first : NULL; s; s = s->next)
        if (s->kind == SETTING_TEXT && strcmp(s->text, drivers_name) == 0)
            return s->key;
    return NULL;
}

bool
nodes_can_translate_out(const struct router *router, const struct connection *connection,
                        const char *drivers_name)
{
    return connection->spec->driver->speaks_our_ids ||
           find_known(router, connection, drivers_name) != NULL;
}

struct error *
nodes_translate_out(const struct router *router, const struct connection *connection,
                    struct arena *arena, char **node_id)
{
    if (connection->spec->driver->speaks_our_ids)
        return NULL;
    const char *known = find_known(router, connection, *node_id);
    if (known) {
        *node_id =
            arena_string(arena, known); /* the connection may be gone when the answer is sent */
        return NULL;
    }
    struct store_list rows;
    const char *prefix = row_key(connection, "", arena);
    struct error *error = store_list(router->shared, prefix, NULL, 0, arena, &rows);
    const char *found = error ? NULL : find_row_of(&rows, *node_id, strlen(prefix));
    const char *host = name_of_host(router, connection, router->node_id, arena);
    if (found)
        *node_id = (char *)found;
    else if (!error && host && strcmp(host, *node_id) == 0)
        *node_id = arena_string(arena, router->node_id);
    return error;
}

struct error *
nodes_remember(const struct router *router, const struct connection *connection,
               const char *drivers_name, struct arena *arena)
{
    char *known;
    const char *key = row_key(connection, router->node_id, arena);
    struct error *error = find_row(router, connection, router->node_id, arena, &known);
    if (error || (known && strcmp(known, drivers_name) == 0))
        return error;
    struct store_change change = {key, (const uint8_t *)drivers_name, strlen(drivers_name),
                                  STORE_ANY};
    return store_write(router->shared, &change, 1, NULL);
}
