/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members as rows: see member_rows.h. Each id that somebody has announced is a row of its own, so
 * their number has no limit, and a list of them has every id once. All values are empty.
 */
#include "cluster/member_rows.h"

#include <string.h>

#include "store/registry_store.h"

#define REMOVED "removed/"
#define OWN "member/"

static const uint8_t nothing[1];

static struct store_change
setting(const char *key)
{
    return (struct store_change){key, nothing, 0, STORE_ANY};
}

static struct store_change
removal(const char *key)
{
    return (struct store_change){.key = key, .expected = STORE_ANY};
}

static char *
known_prefix(const struct owner_rows *rows, struct arena *arena)
{
    return arena_print(arena, "known/%s/%s/", rows->incarnation, rows->connection);
}

static char *
announced_prefix(const struct owner_rows *rows, struct arena *arena)
{
    return arena_print(arena, "announced/%s/%s/", rows->incarnation, rows->connection);
}

static char *
announced_key(const struct owner_rows *rows, const char *node_id, struct arena *arena)
{
    return arena_print(arena, "%s%s", announced_prefix(rows, arena), node_id);
}

/* ---- reading ---- */

static struct error *
add_name(void *context, const char *name, const struct store_entry *entry)
{
    size_t size = strnlen(name, OWNER_NODE_SIZE);
    if (!size || size == OWNER_NODE_SIZE)
        return owner_rows_damaged(entry);
    name_set_add(context, name);
    return NULL;
}

static struct error *
read_known(const struct owner_rows *rows, struct name_set *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return owner_rows_walk(rows->store, known_prefix(rows, &arena), add_name, out);
}

/*
 * A node announces the ids that it knows before it announces that this is all. So we read in the
 * opposite order: whatever the nodes in `announced` know, is in `known`.
 */
struct error *
member_rows_read(const struct owner_rows *rows, struct member_rows *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    *out = (struct member_rows){0};
    struct error *error =
        owner_rows_walk(rows->store, announced_prefix(rows, &arena), add_name, &out->announced);
    if (!error)
        error = read_known(rows, &out->known);
    if (!error)
        error = owner_rows_walk(rows->store, REMOVED, add_name, &out->removed);
    return error;
}

static struct error *
add_names(void *context, const char *name, const struct store_entry *entry)
{
    const char *id = strchr(name, '/');
    if (!id || !id[1] || strlen(id + 1) >= OWNER_NODE_SIZE)
        return owner_rows_damaged(entry);
    name_set_add(context, name);
    return NULL;
}

struct error *
member_rows_read_all(struct store *store, char incarnation[INCARNATION_SIZE],
                     struct member_rows *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    *out = (struct member_rows){0};
    struct error *error = owner_rows_read_incarnation(store, incarnation);
    if (!error && incarnation[0])
        error = owner_rows_walk(store, arena_print(&arena, "announced/%s/", incarnation), add_names,
                                &out->announced);
    if (!error && incarnation[0])
        error = owner_rows_walk(store, arena_print(&arena, "known/%s/", incarnation), add_names,
                                &out->known);
    return error ? error : owner_rows_walk(store, REMOVED, add_name, &out->removed);
}

void
member_rows_clear(struct member_rows *members)
{
    name_set_clear(&members->known);
    name_set_clear(&members->announced);
    name_set_clear(&members->removed);
}

bool
member_rows_print_awaited(const struct member_rows *members, struct buffer *out)
{
    bool any = false;
    for (size_t i = 0; i < members->known.count; i++) {
        const char *id = members->known.names[i];
        if (name_set_has(&members->announced, id) || name_set_has(&members->removed, id))
            continue;
        buffer_print(out, "%s%s", any ? ", " : "", id);
        any = true;
    }
    return any;
}

struct error *
member_rows_find_announced(const struct owner_rows *rows, const char *node_id, bool *found)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return store_find(rows->store, announced_key(rows, node_id, &arena), &arena, &entry, found);
}

struct error *
member_rows_find_removed(const struct owner_rows *rows, const char *node_id, bool *found)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return store_find(rows->store, arena_print(&arena, REMOVED "%s", node_id), &arena, &entry,
                      found);
}

static char *
complete_key(const struct owner_rows *rows, struct arena *arena)
{
    return arena_print(arena, "complete/%s/%s", rows->incarnation, rows->connection);
}

struct error *
member_rows_find_complete(const struct owner_rows *rows, bool *found)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return store_find(rows->store, complete_key(rows, &arena), &arena, &entry, found);
}

/* ---- writing ---- */

struct error *
member_rows_set_complete(const struct owner_rows *rows)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct store_change change = setting(complete_key(rows, &arena));
    return store_write(rows->store, &change, 1, NULL);
}

static struct error *
add_known(const struct owner_rows *rows, const struct name_set *ids, const struct name_set *there)
{
    struct arena arena AUTO(arena_clear);
    struct store_change changes[REGISTRY_STORE_MAX_CHANGES];
    size_t count = 0;
    struct error *error = NULL;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (size_t i = 0; !error && i < ids->count; i++) {
        if (name_set_has(there, ids->names[i]))
            continue;
        changes[count++] =
            setting(arena_print(&arena, "%s%s", known_prefix(rows, &arena), ids->names[i]));
        if (count == COUNT_OF(changes)) {
            error = store_write(rows->store, changes, count, NULL);
            count = 0;
        }
    }
    return error || !count ? error : store_write(rows->store, changes, count, NULL);
}

struct error *
member_rows_add_known(const struct owner_rows *rows, const char *node_id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct store_change change =
        setting(arena_print(&arena, "%s%s", known_prefix(rows, &arena), node_id));
    return store_write(rows->store, &change, 1, NULL);
}

struct error *
member_rows_announce(const struct owner_rows *rows, const char *node_id,
                     const struct name_set *known)
{
    struct arena arena AUTO(arena_clear);
    struct name_set there AUTO(name_set_clear) = {0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = read_known(rows, &there);
    if (!error)
        error = add_known(rows, known, &there);
    if (error)
        return error;
    const struct store_change changes[] = {
        setting(announced_key(rows, node_id, &arena)),
        removal(arena_print(&arena, REMOVED "%s", node_id)),
    };
    return store_write(rows->store, changes, COUNT_OF(changes), NULL);
}

struct error *
member_rows_remove(struct store *store, const char *node_id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct store_change change = setting(arena_print(&arena, REMOVED "%s", node_id));
    return store_write(store, &change, 1, NULL);
}

struct error *
member_rows_take_back(struct store *store, const char *node_id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct store_change change = removal(arena_print(&arena, REMOVED "%s", node_id));
    return store_write(store, &change, 1, NULL);
}

/* ---- a node's own store ---- */

struct error *
member_rows_list_own(struct store *own, struct name_set *ids)
{
    return owner_rows_walk(own, OWN, add_name, ids);
}

struct error *
member_rows_add_own(struct store *own, const char *node_id)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    bool found;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *key = arena_print(&arena, OWN "%s", node_id);
    const struct store_change change = setting(key);
    struct error *error = store_find(own, key, &arena, &entry, &found);
    return error || found ? error : store_write(own, &change, 1, NULL);
}
