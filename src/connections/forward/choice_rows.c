/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the connections that labels have selected: see choice_rows.h. */
#include "connections/forward/choice_rows.h"

#include <string.h>

#include "volumes/handle.h"

char *
choice_rows_key(const char *name, struct arena *arena)
{
    return arena_print(arena, "choice/%s", name);
}

/* Rows of an earlier version have NAME@HOME for connections that are the same from every node. */
static struct connection *
find_chosen(const struct connection_set *set, const char *place, struct arena *arena)
{
    char *name = arena_string(arena, place);
    struct connection *found = connection_set_find_place(set, place);
    if (!found)
        found = connection_set_find(set, place);
    if (found || !strchr(name, '@'))
        return found;
    *strchr(name, '@') = '\0';
    found = connection_set_find(set, name);
    return found && !found->spec->driver->has_homes ? found : NULL;
}

struct error *
choice_rows_find(struct router *router, const struct connection_set *set, const char *name,
                 struct arena *arena, struct connection **out, uint64_t *revision)
{
    struct store_entry entry;
    bool found;
    *out = NULL;
    *revision = STORE_ABSENT;
    struct error *error =
        store_find(router->shared, choice_rows_key(name, arena), arena, &entry, &found);
    if (error || !found)
        return error;
    *revision = entry.revision;
    const char *chosen = arena_copy(arena, entry.value, entry.value_size);
    *out = find_chosen(set, chosen, arena);
    if (*out)
        return NULL;
    return error_new(CODE_UNAVAILABLE,
                     "connection \"%s\", which may have created the volume, does not exist",
                     chosen);
}

struct error *
choice_rows_write(struct router *router, const char *key, const char *value, uint64_t *revision)
{
    struct store_change change = {key, (const uint8_t *)value, value ? strlen(value) : 0,
                                  *revision};
    return store_write(router->shared, &change, 1, revision);
}

void
choice_rows_look(struct router *router)
{
    struct arena arena;
    struct store_list rows;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error AUTO(error_cleanup) =
        store_list(router->store, "chosen/", NULL, 1, &arena, &rows);
    if (!error)
        atomic_store(&router->has_choices, rows.count > 0);
    arena_clear(&arena);
}

bool
choice_rows_are_shared(const struct router *router, const struct connection *connection,
                       const char *handle)
{
    return router->shared != router->store &&
           (!connection->spec->driver->speaks_our_ids || handle_has_choice(handle));
}

static struct error *
forget_in(struct store *store, const char *volume_id, struct arena *arena)
{
    struct store_entry entry;
    bool found;
    const char *chosen = arena_print(arena, "chosen/%s", volume_id);
    struct error *error = store_find(store, chosen, arena, &entry, &found);
    if (error || !found)
        return error;
    const char *row = arena_copy(arena, entry.value, entry.value_size);
    struct store_change changes[] = {{row, NULL, 0, STORE_ANY}, {chosen, NULL, 0, STORE_ANY}};
    return store_write(store, changes, COUNT_OF(changes), NULL);
}

/* Choices are in the shared store. Copies, which have such rows too, are in this process' own. */
struct error *
choice_rows_forget(const struct router *router, const char *volume_id, bool are_shared,
                   struct arena *arena)
{
    struct error *error = NULL;
    if (atomic_load(&router->has_choices))
        error = forget_in(router->store, volume_id, arena);
    if (!error && are_shared)
        error = forget_in(router->shared, volume_id, arena);
    return error;
}
