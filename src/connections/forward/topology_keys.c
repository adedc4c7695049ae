/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology keys: see topology_keys.h.
 *
 * A row is created once and stays, even if the connection's file is removed. It changes in one case
 * only: two connections share a key, because their values were equal, and the values become
 * different. To keep the key would put volumes where they cannot be.
 */
#include "connections/forward/topology_keys.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ROWS "topology/"
#define MAX_TRIES 10 /* while other processes write the same rows */

struct row {
    const char *connection;
    const char *key; /* the driver's own */
    const char *exposed;
    uint64_t revision;
};

struct rows {
    struct row *items;
    size_t count;
};

struct topology_keys {
    pthread_mutex_t claiming; /* one claim at a time; held while the store is used */
    pthread_mutex_t lock;     /* of the members below; never held for long */
    struct arena arena;
    struct rows rows; /* as they were at the last claim */
};

struct topology_keys *
topology_keys_new(void)
{
    struct topology_keys *keys = memory_zeroed(sizeof *keys);
    pthread_mutex_init(&keys->claiming, NULL);
    pthread_mutex_init(&keys->lock, NULL);
    arena_init(&keys->arena, NULL, 0, SIZE_MAX);
    return keys;
}

void
topology_keys_free(struct topology_keys *keys)
{
    if (!keys)
        return;
    pthread_mutex_destroy(&keys->claiming);
    pthread_mutex_destroy(&keys->lock);
    arena_clear(&keys->arena);
    free(keys);
}

/* ---- rows ---- */

/* Copies the rows and their texts, with room for `more`. */
static struct rows
copy_rows(const struct rows *rows, size_t more, struct arena *arena)
{
    struct rows copy = {arena_alloc(arena, (rows->count + more) * sizeof *copy.items), rows->count};
    for (size_t i = 0; i < rows->count; i++)
        copy.items[i] = (struct row){
            arena_string(arena, rows->items[i].connection), arena_string(arena, rows->items[i].key),
            arena_string(arena, rows->items[i].exposed), rows->items[i].revision};
    return copy;
}

/* The rows of the connection with this name; NULL: all rows. */
static struct error *
read_rows(struct store *store, const char *connection, struct arena *arena, struct rows *out)
{
    struct store_list list;
    const char *prefix = connection ? arena_print(arena, ROWS "%s/", connection) : ROWS;
    struct error *error = store_list(store, prefix, NULL, 0, arena, &list);
    *out = (struct rows){0};
    if (error)
        return error_wrap(error, "read the names of topology keys");
    out->items = arena_alloc(arena, list.count * sizeof *out->items);
    for (size_t i = 0; i < list.count; i++) {
        const struct store_entry *entry = &list.entries[i];
        char *key = arena_string(arena, entry->key + strlen(ROWS));
        const char *name = strsep(&key, "/");
        const char *exposed = arena_copy(arena, entry->value, entry->value_size);
        if (key)
            out->items[out->count++] = (struct row){name, key, exposed, entry->revision};
    }
    return NULL;
}

static struct row *
find_row_by(const struct rows *rows, const char *connection, const char *key)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->items[i].connection, connection) == 0 &&
            strcmp(rows->items[i].key, key) == 0)
            return &rows->items[i];
    return NULL;
}

/* By the connection's name, or by an alias. */
static struct row *
find_row(const struct rows *rows, const struct connection *connection, const char *key)
{
    const struct text_list *aliases = &connection->spec->aliases;
    struct row *row = find_row_by(rows, connection->spec->name, key);
    for (size_t i = 0; !row && i < aliases->count; i++)
        row = find_row_by(rows, aliases->items[i], key);
    return row;
}

/* ---- in memory ---- */

/* Do the messages of the method contain a topology? */
static bool
has_topology(const char *path)
{
    static const char *const paths[] = {
        "/csi.v1.Controller/CreateVolume",
        "/csi.v1.Controller/CreateSnapshot",
        "/csi.v1.Controller/ControllerGetVolume",
        "/csi.v1.Controller/GetSnapshot",
        "/csi.v1.Controller/GetCapacity",
        "/csi.v1.Controller/ListVolumes",
        "/csi.v1.Controller/ListSnapshots",
        "/csi.v1.GroupController/CreateVolumeGroupSnapshot",
        "/csi.v1.GroupController/GetVolumeGroupSnapshot",
        "/skycap.v1.Inventory/GetVolume",
        "/skycap.v1.Inventory/GetSnapshot",
        "/skycap.v1.Inventory/ListVolumes",
        "/skycap.v1.Inventory/ListSnapshots",
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (strcmp(paths[i], path) == 0)
            return true;
    return false;
}

static bool
needs_keys(const struct driver_facts *facts, const struct method *method)
{
    static const uint64_t with_topology =
        UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS |
        UINT64_C(1)
            << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__SNAPSHOT_ACCESSIBILITY_CONSTRAINTS;
    return facts->services & with_topology && has_topology(method->path);
}

/* Are all keys that the driver reports claimed? */
static bool
are_claimed(const struct router *router, const struct connection *connection,
            const struct driver_facts *facts)
{
    struct topology_keys *keys = router->topology_keys;
    bool are = true;
    pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < facts->topology.count; i++)
        are = are && find_row(&keys->rows, connection, facts->topology.pairs[i].key);
    pthread_mutex_unlock(&keys->lock);
    return are;
}

bool
topology_keys_are_at_hand(const struct router *router, const struct connection *connection,
                          const struct method *method)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return !needs_keys(facts, method) ||
           (router->is_node && are_claimed(router, connection, facts));
}

struct text_map
topology_keys_claimed(const struct router *router, const struct connection *connection,
                      struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    struct topology_keys *keys = router->topology_keys;
    struct text_map out = {0};
    pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < facts->topology.count; i++) {
        const char *key = arena_string(arena, facts->topology.pairs[i].key);
        const struct row *row = find_row(&keys->rows, connection, key);
        text_map_set(&out, arena, key, row ? arena_string(arena, row->exposed) : key);
    }
    pthread_mutex_unlock(&keys->lock);
    return out;
}

/* ---- claims ---- */

struct claim {
    const struct router *router;
    const struct connection_set *set;
    struct arena *arena;
    struct rows rows;
    bool is_late; /* another process has written meanwhile: read again */
};

/* The value that a connection's driver reports for this node; NULL: none. */
static const char *
value_of(const struct claim *claim, const char *connection, const char *key)
{
    const struct connection *found = connection_set_find(claim->set, connection);
    if (!found)
        return NULL;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(found->driver);
    const char *value = text_map_find(&facts->topology, key);
    return value ? arena_string(claim->arena, value) : NULL;
}

/*
 * Does another connection expose this key with another value? A connection whose value is unknown
 * counts as different, unless the two shared the key before. Of two whose values have become
 * different, the first by name keeps the key.
 */
static bool
is_taken(const struct claim *claim, const struct connection *connection, const char *key,
         const char *value, bool has_row)
{
    for (size_t i = 0; i < claim->rows.count; i++) {
        const struct row *other = &claim->rows.items[i];
        if (strcmp(other->exposed, key) != 0 ||
            connection_set_find(claim->set, other->connection) == connection)
            continue;
        const char *others = value_of(claim, other->connection, other->key);
        bool differs = others ? strcmp(others, value) != 0 : !has_row;
        if (differs && (!has_row || strcmp(other->connection, connection->spec->name) < 0))
            return true;
    }
    return false;
}

static struct error *
write_row(struct claim *claim, const struct row *row, uint64_t *revision)
{
    const char *key = arena_print(claim->arena, ROWS "%s/%s", row->connection, row->key);
    struct store_change change = {key, (const uint8_t *)row->exposed, strlen(row->exposed),
                                  *revision};
    struct error *error = store_write(claim->router->shared, &change, 1, revision);
    if (!error || error->code != CODE_ABORTED)
        return error_wrap(error, "write the name of a topology key");
    error_free(error);
    claim->is_late = true;
    return NULL;
}

static struct error *
claim_key(struct claim *claim, const struct connection *connection, const struct text_pair *pair)
{
    const char *name = connection->spec->name;
    struct row *own = find_row_by(&claim->rows, name, pair->key);
    const struct row *before = find_row(&claim->rows, connection, pair->key);
    const char *exposed = before ? before->exposed : pair->key;
    if (strcmp(exposed, pair->key) == 0 &&
        is_taken(claim, connection, pair->key, pair->value, before != NULL))
        exposed = arena_print(claim->arena, "%s.%s", name, pair->key);
    if (own && strcmp(own->exposed, exposed) == 0)
        return NULL;
    if (before && strcmp(before->exposed, exposed) != 0)
        log_warn(claim->router->log,
                 "two connections no longer agree on a topology key; one of them gets another key",
                 LOG_TEXT("connection", name), LOG_TEXT("key", pair->key),
                 LOG_TEXT("now", exposed));
    struct row row = {name, arena_string(claim->arena, pair->key), exposed,
                      own ? own->revision : STORE_ABSENT};
    struct error *error = write_row(claim, &row, &row.revision);
    if (error || claim->is_late)
        return error;
    if (!own) /* claim_connection made room */
        own = &claim->rows.items[claim->rows.count++];
    *own = row;
    return NULL;
}

static struct error *
claim_connection(struct claim *claim, const struct connection *connection)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    struct rows rows = copy_rows(&claim->rows, facts->topology.count, claim->arena);
    struct error *error = NULL;
    claim->rows = rows;
    for (size_t i = 0; !error && !claim->is_late && i < facts->topology.count; i++)
        error = claim_key(claim, connection, &facts->topology.pairs[i]);
    return error;
}

static struct error *
claim_all(struct claim *claim)
{
    claim->is_late = false;
    struct error *error = read_rows(claim->router->shared, NULL, claim->arena, &claim->rows);
    for (size_t i = 0; !error && !claim->is_late && i < claim->set->count; i++)
        if (claim->set->slots[i].connection)
            error = claim_connection(claim, claim->set->slots[i].connection);
    return error;
}

static void
keep_rows(struct topology_keys *keys, const struct rows *rows)
{
    pthread_mutex_lock(&keys->lock);
    arena_clear(&keys->arena);
    keys->rows = copy_rows(rows, 0, &keys->arena);
    pthread_mutex_unlock(&keys->lock);
}

struct error *
topology_keys_claim(const struct router *router, const struct connection_set *set,
                    struct arena *arena)
{
    struct topology_keys *keys = router->topology_keys;
    struct claim claim = {.router = router, .set = set, .arena = arena};
    struct error *error = NULL;
    pthread_mutex_lock(&keys->claiming);
    for (unsigned tries = 0; tries == 0 || (!error && claim.is_late && tries < MAX_TRIES); tries++)
        error = claim_all(&claim);
    if (!error && claim.is_late)
        error = error_new(CODE_ABORTED, "others write the names of topology keys; try again");
    if (!error)
        keep_rows(keys, &claim.rows);
    pthread_mutex_unlock(&keys->claiming);
    return error;
}

/* ---- for a call ---- */

/* Without the node side: the keys that nodes have claimed, and those of the local driver. */
static struct error *
read_of_connection(const struct router *router, const struct connection *connection,
                   struct arena *arena, struct text_map *out)
{
    const struct text_list *aliases = &connection->spec->aliases;
    *out = topology_keys_claimed(router, connection, arena);
    for (size_t i = aliases->count + 1; i-- > 0;) { /* the name itself comes last and overrides */
        struct rows rows;
        const char *name = i ? aliases->items[i - 1] : connection->spec->name;
        struct error *error = read_rows(router->shared, name, arena, &rows);
        if (error)
            return error;
        for (size_t k = 0; k < rows.count; k++)
            text_map_set(out, arena, rows.items[k].key, rows.items[k].exposed);
    }
    return NULL;
}

struct error *
topology_keys_read(const struct router *router, const struct connection_set *set,
                   const struct connection *connection, const struct method *method,
                   struct arena *arena, struct text_map *out)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    struct error *error = NULL;
    *out = (struct text_map){0};
    if (!needs_keys(facts, method))
        return NULL;
    if (!router->is_node)
        return read_of_connection(router, connection, arena, out);
    if (!are_claimed(router, connection, facts))
        error = topology_keys_claim(router, set, arena);
    if (!error)
        *out = topology_keys_claimed(router, connection, arena);
    return error;
}
