/* SPDX-License-Identifier: Apache-2.0 */
/* Where volumes are staged and published: see mount_rows.h. */
#include "volumes/mount_rows.h"

#include <string.h>
#include <sys/stat.h>

#include "volumes/handle.h"

#define PREFIX "mount/"

static char *
key_of(const mount_record *record, struct arena *arena)
{
    return arena_print(arena, PREFIX "%s/%s", record->volume_handle, record->handle);
}

struct error *
mount_rows_list(struct engine *engine, const char *volume_handle, struct arena *arena,
                struct mount_list *out)
{
    struct store_list list;
    const char *prefix = volume_handle ? arena_print(arena, PREFIX "%s/", volume_handle) : PREFIX;
    *out = (struct mount_list){0};
    struct error *error = store_list(engine->store, prefix, NULL, 0, arena, &list);
    if (error)
        return error;
    out->records = arena_alloc(arena, list.count * sizeof *out->records);
    for (; out->count < list.count && !error; out->count++) {
        struct row row;
        error = rows_unpack(&skycap__records__mount_record__descriptor, &list.entries[out->count],
                            arena, &row);
        out->records[out->count] = (mount_record *)row.record;
    }
    return error;
}

mount_record *
mount_rows_find(const struct mount_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->records[i]->path, path) == 0)
            return list->records[i];
    return NULL;
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
    if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
        return a->st_rdev == b->st_rdev;
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

mount_record *
mount_rows_find_same(const struct mount_list *list, const char *path)
{
    struct stat wanted, found;
    mount_record *record = mount_rows_find(list, path);
    if (record || stat(path, &wanted) != 0)
        return record;
    for (size_t i = 0; i < list->count; i++)
        if (stat(list->records[i]->path, &found) == 0 && is_same_file(&wanted, &found))
            return list->records[i];
    return NULL;
}

struct error *
mount_rows_add(struct engine *engine, mount_record *record, struct arena *arena)
{
    size_t size;
    record->handle = arena_alloc(arena, BACKEND_HANDLE_SIZE);
    handle_make(engine, record->handle);
    uint8_t *bytes = rows_pack(&record->base, arena, &size);
    struct store_change change = {key_of(record, arena), bytes, size, STORE_ABSENT};
    return store_write(engine->store, &change, 1, NULL);
}

struct error *
mount_rows_delete(struct engine *engine, const mount_record *record)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_change change = {key_of(record, &arena), NULL, 0, STORE_ANY};
    return store_write(engine->store, &change, 1, NULL);
}

bool
mount_rows_is_publication(const mount_record *record)
{
    return record->staging_path[0];
}
