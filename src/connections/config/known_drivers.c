/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers of names: see known_drivers.h. */
#include "connections/config/known_drivers.h"

#include <string.h>

static const char *
row_key(const char *name, struct arena *arena)
{
    return arena_print(arena, "driver/%s", name);
}

static struct error *
refuse(const struct connection_spec *spec, const char *name, const char *before)
{
    return error_new(CODE_INVALID_ARGUMENT,
                     "driver: it is %s, but \"%s\" was a connection of driver %s, and ids with "
                     "that name belong to its volumes; choose another name or, if none of these "
                     "volumes is left, run: skycap connection forget %s",
                     spec->driver->name, name, before, name);
}

static struct error *
check_name(struct store *store, const struct connection_spec *spec, const char *name,
           struct arena *arena, bool *found)
{
    struct store_entry entry;
    struct error *error = store_find(store, row_key(name, arena), arena, &entry, found);
    if (error || !*found)
        return error;
    const char *before = arena_copy(arena, entry.value, entry.value_size);
    return strcmp(before, spec->driver->name) == 0 ? NULL : refuse(spec, name, before);
}

struct error *
known_drivers_check(struct store *store, const struct connection_spec *spec)
{
    struct arena arena AUTO(arena_clear);
    bool found, is_known = false;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = check_name(store, spec, spec->name, &arena, &is_known);
    for (size_t i = 0; i < spec->aliases.count && !error; i++)
        error = check_name(store, spec, spec->aliases.items[i], &arena, &found);
    if (error || is_known)
        return error;
    const char *driver = spec->driver->name;
    struct store_change change = {row_key(spec->name, &arena), (const uint8_t *)driver,
                                  strlen(driver), STORE_ANY};
    return store_write(store, &change, 1, NULL);
}

struct error *
known_drivers_forget(struct store *store, const char *name)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    bool found;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *key = row_key(name, &arena);
    struct error *error = store_find(store, key, &arena, &entry, &found);
    if (!error && !found)
        error = error_new(CODE_NOT_FOUND, "nothing is remembered of a connection \"%s\"", name);
    if (error)
        return error;
    struct store_change change = {key, NULL, 0, entry.revision};
    return store_write(store, &change, 1, NULL);
}
