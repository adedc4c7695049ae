/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging: see stage.h.
 *
 * What if the process dies: the row is written before the mount and deleted after it, so there is never a mount without a row. A row without a mount
 * is what the next request for it repairs or deletes.
 */
#include "volumes/stage.h"

#include <string.h>

#include "volumes/mounts.h"
#include "volumes/volume.h"

/* ---- rows ---- */

static bool
has_same_flags(const volume_capability *a, const volume_capability *b)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *const *first = points_mount_flags(a, &arena);
    const char *const *second = points_mount_flags(b, &arena);
    for (; *first && *second && strcmp(*first, *second) == 0; first++)
        second++;
    return !*first && !*second;
}

static bool
is_same_capability(const volume_capability *a, const volume_capability *b)
{
    if (a->access_type_case != b->access_type_case || a->access_mode->mode != b->access_mode->mode)
        return false;
    if (place_is_block(a))
        return true;
    return strcmp(a->mount->fs_type, b->mount->fs_type) == 0 &&
           strcmp(a->mount->volume_mount_group, b->mount->volume_mount_group) == 0 &&
           has_same_flags(a, b);
}

static bool
is_same_use(const mount_record *record, const struct use *use)
{
    return record->read_only == use->read_only &&
           strcmp(record->staging_path, use->staging_path) == 0 &&
           is_same_capability(record->capability, use->capability);
}

struct use
stage_use_of(const mount_record *record)
{
    return (struct use){record->path, record->staging_path, record->capability, record->read_only};
}

static mount_record *
make_record(const char *handle, const struct use *use, struct arena *arena)
{
    mount_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__mount_record__init(record);
    record->volume_handle = (char *)handle;
    record->path = (char *)use->path;
    record->capability = (volume_capability *)use->capability;
    record->read_only = use->read_only;
    record->staging_path = (char *)use->staging_path;
    return record;
}

struct error *
stage_check_same(const struct mount_list *uses, const struct use *use)
{
    const mount_record *record = mount_rows_find(uses, use->path);
    if (!record || is_same_use(record, use))
        return NULL;
    return error_new(CODE_ALREADY_EXISTS,
                     "the volume is at %s already, with another capability or access", use->path);
}

struct error *
stage_remember_use(struct engine *engine, const char *handle, const struct use *use,
                   struct arena *arena, mount_record **out, bool *is_new)
{
    struct mount_list list;
    struct error *error = mount_rows_list(engine, handle, arena, &list);
    if (!error)
        error = stage_check_same(&list, use);
    if (error)
        return error;
    *out = mount_rows_find(&list, use->path);
    *is_new = !*out;
    if (*out)
        return NULL;
    *out = make_record(handle, use, arena);
    return mount_rows_add(engine, *out, arena);
}

struct error *
stage_list_uses(struct engine *engine, const volume_record *volume, struct arena *arena,
                struct mount_list *out)
{
    struct error *error = mount_rows_list(engine, volume->handle, arena, out);
    size_t kept = 0;
    for (size_t i = 0; i < out->count && !error; i++) {
        struct use use = stage_use_of(out->records[i]);
        bool is_there;
        error = place_is_used(engine, volume, &use, &is_there);
        if (!error && is_there)
            out->records[kept++] = out->records[i];
        else if (!error)
            error = mount_rows_delete(engine, out->records[i]);
    }
    out->count = kept;
    return error;
}

/* ---- staging ---- */

/* A file system and raw writes into the device below it do not go together. */
static bool
is_contrary(const mount_record *record, const struct use *use)
{
    return place_is_block(record->capability) != place_is_block(use->capability) &&
           strcmp(record->path, use->path) != 0;
}

bool
stage_contradicts(const mount_record *record, const struct use *use)
{
    if (strcmp(record->path, use->path) == 0)
        return !is_same_use(record, use);
    return is_contrary(record, use);
}

/* After a reboot a volume may be in use no more as it was, though nobody has unstaged it. */
static struct error *
forget_lost_contraries(struct engine *engine, const volume_record *volume, const struct use *use,
                       struct arena *arena)
{
    struct mount_list uses;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &uses);
    for (size_t i = 0; i < uses.count && !error; i++) {
        struct use other = stage_use_of(uses.records[i]);
        bool is_there = true;
        if (stage_contradicts(uses.records[i], use))
            error = place_is_used(engine, volume, &other, &is_there);
        if (!error && !is_there)
            error = mount_rows_delete(engine, uses.records[i]);
    }
    return error;
}

struct error *
stage_check_access_type(struct engine *engine, const char *handle, const struct use *use,
                        struct arena *arena)
{
    struct mount_list uses;
    struct error *error = mount_rows_list(engine, handle, arena, &uses);
    for (size_t i = 0; i < uses.count && !error; i++)
        if (is_contrary(uses.records[i], use))
            error = error_new(
                CODE_FAILED_PRECONDITION,
                "the volume is in use at %s %s: it cannot be both at a time", uses.records[i]->path,
                place_is_block(use->capability) ? "as a file system" : "as a block device");
    return error;
}

struct error *
stage_volume(struct engine *engine, const char *handle, const struct use *use)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    mount_record *record;
    bool is_new;
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (!error)
        error = place_check_capability(held.record, use->capability);
    if (!error)
        error = forget_lost_contraries(engine, held.record, use, &arena);
    if (!error)
        error = stage_check_access_type(engine, handle, use, &arena);
    if (!error)
        error = stage_remember_use(engine, handle, use, &arena, &record, &is_new);
    if (error)
        return error;
    error = place_volume(engine, &held, use, !is_new, &arena);
    if (error && is_new)
        error_free(mount_rows_delete(engine, record)); /* what stays, the next request repairs */
    return error;
}

/* ---- and back ---- */

struct error *
stage_check_unpublished(const struct mount_list *uses, const char *staging_path)
{
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->records[i]->staging_path, staging_path) == 0 &&
            mount_rows_is_publication(uses->records[i]))
            return error_new(CODE_FAILED_PRECONDITION,
                             "the volume is published at %s from here: unpublish it first",
                             uses->records[i]->path);
    return NULL;
}

/* Nothing of ours is staged there: the path stays as it is, unless it shows this very volume. The rows may have been rebuilt. */
static struct error *
undo_unknown(struct engine *engine, const volume_record *volume, const char *path, size_t use_count)
{
    bool is_there;
    struct error *error = place_is_at(engine, volume, path, &is_there);
    if (!error && is_there)
        error = place_remove(path);
    return error || use_count ? error : place_release_unbound(engine, volume);
}

static struct error *
undo_known(struct engine *engine, const volume_record *volume, const mount_record *record,
           size_t use_count)
{
    struct error *error = NULL;
    if (!place_is_block(record->capability))
        error = place_remove(record->path);
    if (!error && use_count <= 1)
        error = place_release_devices(engine, volume, false);
    return error ? error : mount_rows_delete(engine, record);
}

struct error *
stage_undo(struct engine *engine, const char *handle, const char *path)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct mount_list rows, uses;
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return NULL;
    }
    if (!error)
        error = mount_rows_list(engine, handle, &arena, &rows);
    if (!error)
        error = stage_list_uses(engine, held.record, &arena, &uses);
    if (!error)
        error = stage_check_unpublished(&uses, path);
    if (error)
        return error;
    mount_record *record = mount_rows_find(&rows, path);
    return record ? undo_known(engine, held.record, record, uses.count)
                  : undo_unknown(engine, held.record, path, uses.count);
}
