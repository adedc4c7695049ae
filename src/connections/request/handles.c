/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long handles: see handles.h.
 *
 * The short handle is a hash of the long one, so that lists and creates return the same id without
 * a reverse index. On a collision the next free number after the hash is used.
 */
#include "connections/request/handles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"

#define SHORT_MARK '~'
#define SHORT_SIZE 17
#define MAX_COLLISIONS 100
#define ROWS "handle/"   /* "handle/ID": the long handle */
#define MARKS "deleted/" /* "deleted/ID": the Unix time of the deletion */
#define MARK_SECONDS (30 * 24 * 3600)

bool
handles_is_short(const char *handle)
{
    return handle[0] == SHORT_MARK;
}

bool
handles_needs_row(const char *connection, const char *handle)
{
    return handles_is_short(handle) || strlen(connection) + strlen(handle) + 3 > GLOBAL_ID_MAX;
}

static char *
print_short(enum id_kind kind, const char *connection, uint64_t number, struct arena *arena)
{
    char handle[SHORT_SIZE + 1];
    snprintf(handle, sizeof handle, "%c%016llx", SHORT_MARK, (unsigned long long)number);
    return global_id_print(kind, connection, handle, arena);
}

static const char *
row_key(const char *id, struct arena *arena)
{
    return arena_print(arena, ROWS "%s", id);
}

static bool
is_row_of(const struct store_entry *entry, const char *handle)
{
    return entry->value_size == strlen(handle) &&
           memcmp(entry->value, handle, entry->value_size) == 0;
}

/* Finds or creates the row. *is_other: another handle has it. */
static struct error *
claim(struct store *store, const char *key, const char *handle, enum handles_state state,
      struct arena *arena, bool *is_other)
{
    for (;;) {
        struct store_entry entry;
        bool found;
        struct error *error = store_find(store, key, arena, &entry, &found);
        if (error)
            return error;
        *is_other = found && !is_row_of(&entry, handle);
        if (*is_other || state == HANDLES_MAY_BE_GONE || (found && state != HANDLES_CREATED))
            return NULL;
        struct store_change change = {key, (const uint8_t *)handle, strlen(handle),
                                      found ? entry.revision : STORE_ABSENT};
        error = store_write(store, &change, 1, NULL);
        if (!error || error->code != CODE_ABORTED)
            return error;
        error_free(error); /* another writer was faster: read again */
    }
}

struct error *
handles_print_id(struct store *store, enum id_kind kind, const char *connection, const char *handle,
                 enum handles_state state, struct arena *arena, char **id)
{
    if (!handles_needs_row(connection, handle)) {
        *id = global_id_print(kind, connection, handle, arena);
        return NULL;
    }
    uint64_t number = hash_text(handle);
    for (unsigned i = 0; i < MAX_COLLISIONS; i++, number++) {
        bool is_other;
        *id = print_short(kind, connection, number, arena);
        struct error *error = claim(store, row_key(*id, arena), handle, state, arena, &is_other);
        if (error)
            return error_wrap(error, "remember the long handle of connection \"%s\"", connection);
        if (!is_other)
            return NULL;
    }
    return error_new(CODE_INTERNAL, "too many long handles of connection \"%s\" have the same hash",
                     connection);
}

struct error *
handles_read(struct store *store, const char *id, const struct global_id *parts,
             struct arena *arena, const char **out)
{
    struct store_entry entry;
    *out = parts->handle;
    if (!handles_is_short(parts->handle))
        return NULL;
    if (strlen(parts->handle) != SHORT_SIZE)
        return error_new(CODE_NOT_FOUND, "there is no \"%s\"", id);
    struct error *error = store_get(store, row_key(id, arena), arena, &entry);
    if (!error)
        *out = arena_copy(arena, entry.value, entry.value_size);
    return error;
}

/* ---- lost rows ---- */

struct error *
handles_is_known(struct store *store, const char *id, const struct global_id *parts,
                 struct arena *arena, bool *out)
{
    struct store_entry entry;
    *out = true;
    if (!handles_is_short(parts->handle) || strlen(parts->handle) != SHORT_SIZE)
        return NULL;
    struct error *error = store_find(store, row_key(id, arena), arena, &entry, out);
    if (error || *out)
        return error;
    return store_find(store, arena_print(arena, MARKS "%s", id), arena, &entry, out);
}

enum handles_match
handles_match(const struct global_id *parts, const char *handle)
{
    if (!handles_needs_row(parts->connection, handle))
        return HANDLES_DIFFER;
    uint64_t behind = strtoull(parts->handle + 1, NULL, 16) - hash_text(handle);
    return behind == 0               ? HANDLES_MATCH
           : behind < MAX_COLLISIONS ? HANDLES_MAY_MATCH
                                     : HANDLES_DIFFER;
}

/* ---- forgetting ---- */

/* If this row were deleted, the next handle with the same hash would get another id. */
static struct error *
has_successor(struct store *store, enum id_kind kind, const char *connection,
              const char *short_handle, struct arena *arena, bool *out)
{
    struct store_entry entry;
    uint64_t number = strtoull(short_handle + 1, NULL, 16);
    const char *id = print_short(kind, connection, number + 1, arena);
    return store_find(store, row_key(id, arena), arena, &entry, out);
}

struct error *
handles_find_row(struct store *store, enum id_kind kind, const char *connection,
                 const char *short_handle, const char *handle, bool leaves_mark,
                 struct arena *arena, struct handles_row **rows)
{
    struct store_entry entry;
    bool found, is_needed;
    const char *key = row_key(global_id_print(kind, connection, short_handle, arena), arena);
    struct error *error = store_find(store, key, arena, &entry, &found);
    if (error || !found || !is_row_of(&entry, handle))
        return error;
    error = has_successor(store, kind, connection, short_handle, arena, &is_needed);
    if (error || is_needed)
        return error;
    struct handles_row *row = arena_alloc(arena, sizeof *row);
    *row = (struct handles_row){*rows, key, entry.revision, leaves_mark};
    *rows = row;
    return NULL;
}

struct error *
handles_forget(struct store *store, const struct handles_row *rows, struct arena *arena)
{
    for (const struct handles_row *row = rows; row; row = row->next) {
        const char *now = arena_print(arena, "%lld", (long long)time(NULL));
        const char *mark = arena_print(arena, MARKS "%s", row->key + strlen(ROWS));
        struct store_change changes[] = {
            {row->key, NULL, 0, row->revision},
            {mark, (const uint8_t *)now, strlen(now), STORE_ANY},
        };
        struct error *error = store_write(store, changes, row->leaves_mark ? 2 : 1, NULL);
        if (error && error->code != CODE_ABORTED)
            return error;
        error_free(error);
    }
    return NULL;
}

struct error *
handles_drop_old_marks(struct store *store)
{
    struct arena arena AUTO(arena_clear);
    struct store_list marks;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = store_list(store, MARKS, NULL, 0, &arena, &marks);
    for (size_t i = 0; !error && i < marks.count; i++) {
        const struct store_entry *mark = &marks.entries[i];
        const char *made = arena_copy(&arena, mark->value, mark->value_size);
        struct store_change change = {mark->key, NULL, 0, STORE_ANY};
        if (strtoll(made, NULL, 10) + MARK_SECONDS < time(NULL))
            error = store_write(store, &change, 1, NULL);
    }
    return error;
}
