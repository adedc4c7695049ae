/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long handles: see handles.h.
 *
 * The short one is a hash of the long one, so that a list gives the same id as the create did, without an index the other way round. Two that
 * have the same hash are told apart by a number behind it.
 */
#include "connections/handles.h"

#include <stdio.h>
#include <string.h>

#define SHORT_MARK '~'
#define MAX_COLLISIONS 100
#define KEY_SIZE 64

bool
handles_is_short(const char *handle)
{
    return handle[0] == SHORT_MARK;
}

bool
handles_needs_row(const char *connection, const char *handle)
{
    /* The kind, a colon and a slash. */
    return handles_is_short(handle) || strlen(connection) + strlen(handle) + 3 > GLOBAL_ID_MAX;
}

/* FNV-1a. */
static uint64_t
hash(const char *text)
{
    uint64_t value = 0xcbf29ce484222325;
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001b3;
    return value;
}

static struct error *
keep(struct store *store, const char *key, const char *handle)
{
    struct store_change change = {key, (const uint8_t *)handle, strlen(handle), STORE_ABSENT};
    return store_write(store, &change, 1, NULL);
}

/* Finds or makes the row; *is_other: it is that of another handle. */
static struct error *
claim(struct store *store, const char *key, const char *handle, struct arena *arena, bool *is_other)
{
    struct store_entry entry;
    bool found;
    *is_other = false;
    struct error *error = store_find(store, key, arena, &entry, &found);
    if (!error && !found) {
        error = keep(store, key, handle);
        if (!error || error->code != CODE_ABORTED)
            return error;
        /* Somebody else was faster: look who. */
        error_free(error);
        error = store_get(store, key, arena, &entry);
    }
    if (!error)
        *is_other = entry.value_size != strlen(handle) ||
                    memcmp(entry.value, handle, entry.value_size) != 0;
    return error;
}

struct error *
handles_print_id(struct store *store, enum id_kind kind, const char *connection, const char *handle,
                 struct arena *arena, char **id)
{
    *id = global_id_print(kind, connection, handle, arena);
    if (!handles_needs_row(connection, handle))
        return NULL;
    uint64_t number = hash(handle);
    for (unsigned i = 0; i < MAX_COLLISIONS; i++, number++) {
        char key[KEY_SIZE];
        bool is_other;
        snprintf(key, sizeof key, "handle/%c%016llx", SHORT_MARK, (unsigned long long)number);
        struct error *error = claim(store, key, handle, arena, &is_other);
        if (error)
            return error_wrap(error, "remember the long handle of connection \"%s\"", connection);
        if (!is_other) {
            *id = global_id_print(kind, connection, key + strlen("handle/"), arena);
            return NULL;
        }
    }
    return error_new(CODE_INTERNAL, "too many long handles of connection \"%s\" are alike",
                     connection);
}

struct error *
handles_read(struct store *store, const char *handle, struct arena *arena, const char **out)
{
    struct store_entry entry;
    *out = handle;
    if (!handles_is_short(handle))
        return NULL;
    if (strlen(handle) != 17)
        return error_new(CODE_NOT_FOUND, "there is no handle \"%s\"", handle);
    const char *key = arena_print(arena, "handle/%s", handle);
    struct error *error = store_get(store, key, arena, &entry);
    if (!error)
        *out = arena_copy(arena, entry.value, entry.value_size);
    return error;
}
