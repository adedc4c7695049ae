/* SPDX-License-Identifier: Apache-2.0 */
/* Entries as rows of a store: see entries.h. */
#include "registry/entries.h"

#include <string.h>

#include "message/message_bytes.h"
#include "message/message_map.h"
#include "proto/records.pb-c.h"

#define PAGE 500

typedef Skycap__Records__RegistryRecord registry_record;

static char *
key_of(const char *path, struct arena *arena)
{
    return arena_print(arena, ENTRIES_PREFIX "%s", path);
}

/* ---- one ---- */

uint8_t *
entries_pack(const struct entry *entry, struct arena *arena, size_t *size)
{
    registry_record record = SKYCAP__RECORDS__REGISTRY_RECORD__INIT;
    record.value = (char *)entry->value;
    record.registered_ms = entry->registered_ms;
    record.expires_ms = entry->expires_ms;
    message_map_write(&entry->attributes, arena,
                      &skycap__records__registry_record__attributes_entry__descriptor,
                      &record.attributes, &record.n_attributes);
    return message_bytes_pack(&record.base, arena, size);
}

bool
entries_unpack(const uint8_t *bytes, size_t size, struct arena *arena, struct entry *out)
{
    const registry_record *record = (const registry_record *)message_bytes_unpack(
        &skycap__records__registry_record__descriptor, bytes, size, arena);
    if (!record)
        return false;
    out->value = record->value;
    out->attributes = message_map_read(record->attributes, record->n_attributes, arena);
    out->registered_ms = record->registered_ms;
    out->expires_ms = record->expires_ms;
    return true;
}

struct error *
entries_set(struct store *store, struct entry *entry)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_change change = {.key = key_of(entry->path, &arena), .expected = STORE_ANY};
    if (entry->value[0])
        change.value = entries_pack(entry, &arena, &change.value_size);
    return store_write(store, &change, 1, &entry->revision);
}

struct error *
entries_read(const struct store_entry *row, struct arena *arena, struct entry *out)
{
    *out = (struct entry){
        .path = row->key + strlen(ENTRIES_PREFIX), .value = "", .revision = row->revision};
    if (!row->value || entries_unpack(row->value, row->value_size, arena, out))
        return NULL;
    return error_new(CODE_DATA_LOSS, "the record %s is damaged", row->key);
}

/* ---- many ---- */

static struct error *
append(struct entry_page *page, const struct store_entry *row, struct arena *arena)
{
    struct error *error = entries_read(row, arena, &page->entries[page->count]);
    if (!error)
        page->count++;
    return error;
}

/* Other paths may sort between a path and those below it ("a-b" between "a" and "a/b"). */
static struct error *
append_exact(struct store *store, const char *path, struct arena *arena, struct entry_page *page)
{
    struct store_entry row;
    bool found;
    struct error *error = store_find(store, key_of(path, arena), arena, &row, &found);
    return error || !found ? error : append(page, &row, arena);
}

static struct error *
append_below(struct store *store, const char *path, const char *after, size_t limit,
             struct arena *arena, struct entry_page *page)
{
    struct store_list list;
    const char *prefix = path[0] ? arena_print(arena, ENTRIES_PREFIX "%s/", path) : ENTRIES_PREFIX;
    size_t room = limit - page->count;
    /* With no room left, one entry is still read, to set has_more. */
    struct error *error = store_list(store, prefix, after ? key_of(after, arena) : NULL,
                                     room ? room : 1, arena, &list);
    if (error)
        return error;
    page->has_more = list.has_more || list.count > room;
    for (size_t i = 0; !error && i < list.count && i < room; i++)
        error = append(page, &list.entries[i], arena);
    return error;
}

struct error *
entries_list(struct store *store, const char *path, const char *after, size_t limit,
             struct arena *arena, struct entry_page *out)
{
    struct error *error = NULL;
    *out = (struct entry_page){.entries = arena_alloc(arena, limit * sizeof *out->entries)};
    if (path[0] && !after)
        error = append_exact(store, path, arena, out);
    if (after && !strcmp(after, path))
        after = NULL;
    return error ? error : append_below(store, path, after, limit, arena, out);
}

/* `*after` becomes the last path of the page, in the arena `next`; NULL: there are no more. */
static struct error *
walk_page(struct store *store, const char *path, const char **after, struct arena *next,
          struct error *(*visit)(void *context, const struct entry *entry), void *context)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct entry_page page;
    struct error *error = entries_list(store, path, *after, PAGE, &arena, &page);
    for (size_t i = 0; !error && i < page.count; i++)
        error = visit(context, page.entries + i);
    arena_clear(next);
    *after = NULL;
    if (!error && page.has_more)
        *after = arena_string(next, page.entries[page.count - 1].path);
    return error;
}

struct error *
entries_walk(struct store *store, const char *path,
             struct error *(*visit)(void *context, const struct entry *entry), void *context)
{
    struct arena next AUTO(arena_clear);
    arena_init(&next, NULL, 0, SIZE_MAX);
    const char *after = NULL;
    struct error *error = NULL;
    do
        error = walk_page(store, path, &after, &next, visit, context);
    while (!error && after);
    return error;
}
