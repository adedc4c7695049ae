/* SPDX-License-Identifier: Apache-2.0 */
/* Records of exported snapshots: see export_record.h. */
#include "exports/export_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "message/message_bytes.h"

#define LEAST_PREFIX 4

static export_record *
unpack(const void *bytes, size_t size, struct arena *arena)
{
    export_record *record = (export_record *)message_bytes_unpack(
        &skycap__exports__export_record__descriptor, bytes, size, arena);
    bool is_good = record && record->manifest.len == REPOSITORY_ID_BYTES &&
                   record->size_bytes >= 0 &&
                   (record->kind == EXPORT_KIND(TREE) || record->kind == EXPORT_KIND(IMAGE));
    return is_good ? record : NULL;
}

static struct error *
take_bytes(const char *id, const struct buffer *bytes, struct arena *arena, export_record **out)
{
    *out = unpack(bytes->bytes, bytes->size, arena);
    return *out
               ? NULL
               : error_new(CODE_DATA_LOSS, "the record of snapshot %s is not one of an export", id);
}

struct error *
export_record_read(struct repository *repository, const char *id, struct arena *arena,
                   export_record **out)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct error *error = repository_snapshot_get(repository, id, &bytes);
    return error ? error : take_bytes(id, &bytes, arena, out);
}

struct error *
export_record_read_listed(struct repository *repository, const char *id, struct arena *arena,
                          export_record **out)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct error *error = repository_snapshot_get_listed(repository, id, &bytes);
    return error ? error : take_bytes(id, &bytes, arena, out);
}

struct repository_id
export_record_manifest(const export_record *record)
{
    struct repository_id id;
    memcpy(id.bytes, record->manifest.data, sizeof id.bytes);
    return id;
}

/* ---- lists ---- */

/* Those that are kept: all, those of a volume, or those that a text may name. */
struct listing {
    struct repository *repository;
    const char *volume; /* or NULL */
    const char *text;   /* or NULL */
    struct arena *arena;
    struct export_list *out;
    size_t capacity;
};

static bool
begins(const char *id, const char *text)
{
    size_t size = strlen(text);
    return size >= LEAST_PREFIX && !strncmp(id, text, size);
}

static bool
is_wanted(const struct listing *listing, const char *id, const export_record *record)
{
    if (listing->volume && strcmp(record->volume_handle, listing->volume) != 0)
        return false;
    return !listing->text || !strcmp(record->name, listing->text) || begins(id, listing->text);
}

static void
keep(struct listing *listing, const char *id, const export_record *record)
{
    struct export_list *out = listing->out;
    if (out->count == listing->capacity) {
        listing->capacity = listing->capacity ? listing->capacity * 2 : 16;
        struct export_item *items = arena_alloc(listing->arena, listing->capacity * sizeof *items);
        if (out->count)
            memcpy(items, out->items, out->count * sizeof *items);
        out->items = items;
    }
    out->items[out->count++] = (struct export_item){
        arena_string(listing->arena, id), message_bytes_copy(&record->base, listing->arena)};
}

static struct error *
take(const char *id, void *context)
{
    struct listing *listing = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    export_record *record;
    struct error *error = export_record_read_listed(listing->repository, id, &arena, &record);
    /* One that is damaged must not hide the others; verify tells about it. */
    if (error && error->code == CODE_DATA_LOSS)
        return error_forgive(error, CODE_DATA_LOSS);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND); /* somebody has just removed it */
    if (is_wanted(listing, id, record))
        keep(listing, id, record);
    return NULL;
}

static int
compare_times(const void *a, const void *b)
{
    const struct export_item *left = a, *right = b;
    if (left->record->taken_ns != right->record->taken_ns)
        return left->record->taken_ns < right->record->taken_ns ? -1 : 1;
    if (left->record->exported_ns != right->record->exported_ns)
        return left->record->exported_ns < right->record->exported_ns ? -1 : 1;
    return strcmp(left->id, right->id);
}

static struct error *
list_records(struct listing *listing)
{
    struct export_list *out = listing->out;
    *out = (struct export_list){0};
    struct error *error = repository_snapshots_list(listing->repository, take, listing);
    if (!error && out->count)
        qsort(out->items, out->count, sizeof *out->items, compare_times);
    return error;
}

struct error *
export_record_list(struct repository *repository, const char *volume_handle, struct arena *arena,
                   struct export_list *out)
{
    struct listing listing = {
        .repository = repository, .volume = volume_handle, .arena = arena, .out = out};
    return list_records(&listing);
}

struct error *
export_record_find(struct repository *repository, const char *text, struct arena *arena,
                   struct export_item *out)
{
    struct export_list list;
    size_t found = 0;
    struct listing listing = {.repository = repository, .text = text, .arena = arena, .out = &list};
    struct error *error = list_records(&listing);
    for (size_t i = 0; !error && i < list.count; i++)
        if (!strcmp(list.items[i].record->name, text)) {
            *out = list.items[i];
            found = 1;
        }
    bool is_id = !found;
    for (size_t i = 0; !error && is_id && i < list.count; i++)
        if (begins(list.items[i].id, text)) {
            *out = list.items[i];
            found++;
        }
    if (error)
        return error;
    if (!found)
        return error_new(CODE_NOT_FOUND, "the repository has no snapshot \"%s\"", text);
    return found > 1 ? error_new(CODE_INVALID_ARGUMENT,
                                 "\"%s\" means several snapshots of the repository: give more of "
                                 "the id",
                                 text)
                     : NULL;
}
