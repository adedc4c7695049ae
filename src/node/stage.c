/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging: see stage.h.
 *
 * If the process dies: the row is written before the mount and deleted after it, so there is never
 * a mount without a row. The next request repairs or deletes a row without a mount.
 */
#include "node/stage.h"

#include <string.h>

#include "node/image_fs.h"
#include "node/mount.h"
#include "node/mount_point.h"
#include "node/parameters.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/volume.h"

static bool
is_image(const volume_record *volume)
{
    return volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE;
}

/* ---- mounting ---- */

static struct error *
mount_tree(struct engine *engine, const volume_record *volume, const struct use *use, bool is_known,
           struct arena *arena)
{
    char source[PATH_MAX];
    struct error *error = volume_find_data(engine, volume, source, sizeof source);
    if (error || mount_point_is_bound(source, use->path, use->read_only))
        return error;
    error = mount_point_clear(use->path, is_known);
    if (!error)
        error = mount_point_make_directory(use->path);
    if (!error)
        error = mount_bind(source, use->path, capability_mount_flags(use->capability, arena),
                           use->read_only);
    return error;
}

/* A failure to grow does not prevent the mount: the volume is no smaller than before. */
static void
log_growth(struct engine *engine, const volume_record *volume, struct error *error)
{
    if (error)
        log_warn(engine->log, "a file system did not grow to the size of its volume",
                 LOG_TEXT("volume", volume->handle), LOG_TEXT("error", error->message));
    error_free(error);
}

static struct error *
mount_new_image(struct engine *engine, struct held_volume *held, const char *device,
                const struct use *use, bool is_known, struct arena *arena)
{
    struct error *error = image_fs_ensure(engine, held, device, arena);
    if (!error)
        error = mount_point_clear(use->path, is_known);
    if (!error)
        error = mount_point_make_directory(use->path);
    if (!error)
        error = image_fs_mount(held->record, device, use->path,
                               capability_mount_flags(use->capability, arena), use->read_only);
    if (error || use->read_only)
        return error;
    log_growth(engine, held->record, image_fs_grow(engine, held, device, use->path, arena));
    parameters_try(engine, held->record, use, NULL, arena);
    return NULL;
}

static struct error *
mount_image(struct engine *engine, struct held_volume *held, const struct use *use, bool is_known,
            struct arena *arena)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    if (!use->read_only)
        log_growth(engine, held->record, image_fs_grow_unmounted(engine, held, arena));
    struct error *error = backing_attach(engine, held->record, LOOP_AUTOCLEAR, &device);
    if (error || (mount_point_is_mounted_from(device.path, use->path) &&
                  mount_point_is_read_only(use->path) == use->read_only))
        return error;
    return mount_new_image(engine, held, device.path, use, is_known, arena);
}

/*
 * A copy made while an image gets its first file system could not tell whether it contains user
 * data. And if copies take long, nobody may start writing to their source.
 */
static struct error *
wait_for_copies(struct engine *engine, const volume_record *volume, const struct use *use,
                struct name_lock **out)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    bool is_blank = volume->fs_type[0] && !volume->formatted_bytes;
    bool is_mounted = false;
    struct data data = volume_data(volume);
    if (!is_image(volume) || (!is_blank && backend_cuts_images(engine->backend, &data, NULL)))
        return NULL;
    struct error *error = backing_find(engine, volume, &backing);
    if (!error)
        error = use_is_mounted(&backing, use, &is_mounted);
    return error || is_mounted
               ? error
               : data_lock_wait(engine, &volume_rows, volume->handle, DATA_LOCK_WAIT_MS, out);
}

struct error *
stage_mount(struct engine *engine, struct held_volume *held, const struct use *use, bool is_known,
            struct arena *arena)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct error *error = wait_for_copies(engine, held->record, use, &lock);
    if (error)
        return error;
    if (capability_is_block(use->capability))
        return backing_attach(engine, held->record, 0, &device);
    error = is_image(held->record) ? mount_image(engine, held, use, is_known, arena)
                                   : mount_tree(engine, held->record, use, is_known, arena);
    if (error)
        return error;
    error = use_apply_group(use);
    if (error && !is_known)
        error_free(mount_remove(use->path)); /* there is no record of it */
    return error;
}

/* ---- staging ---- */

static bool
has_conflicts(const struct mount_list *rows, const struct use *use)
{
    for (size_t i = 0; i < rows->count; i++)
        if (use_conflicts(rows->records[i], use))
            return true;
    return false;
}

/* The users of a raw device may have made a file system on it. */
static struct error *
find_file_system(struct engine *engine, struct held_volume *held, const struct use *use,
                 struct arena *arena)
{
    bool is_new;
    if (capability_is_block(use->capability))
        return NULL;
    struct error *error = image_fs_find(engine, held->record, arena, &is_new);
    return error || !is_new ? error : held_save(engine, held, arena);
}

/*
 * After a reboot the volume may no longer be mounted as the rows say, although nobody has unstaged
 * it.
 */
static struct error *
drop_lost_conflicts(struct engine *engine, const volume_record *volume, const struct use *use,
                    struct mount_list *rows)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    if (!has_conflicts(rows, use))
        return NULL;
    struct error *error = backing_find(engine, volume, &backing);
    return error ? error : use_drop_unmounted(engine, &backing, rows, use_conflicts, use);
}

struct error *
stage_volume(struct engine *engine, const char *handle, const struct use *use)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct mount_list rows;
    mount_record *record;
    bool is_new;
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (!error)
        error = find_file_system(engine, &held, use, &arena);
    if (!error)
        error = use_check_capability(held.record, use->capability);
    if (!error)
        error = mount_rows_list(engine, handle, &arena, &rows);
    if (!error)
        error = drop_lost_conflicts(engine, held.record, use, &rows);
    if (!error)
        error = use_check_access_type(&rows, use);
    if (!error)
        error = use_record(engine, handle, &rows, use, &arena, &record, &is_new);
    if (error)
        return error;
    error = stage_mount(engine, &held, use, !is_new, &arena);
    if (error && is_new)
        error_free(mount_rows_delete(engine, record)); /* the next request repairs what stays */
    return error;
}

/* ---- unstaging ---- */

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

/*
 * There is no row. Unmounts the path only if it shows this volume: the rows may have been rebuilt.
 */
static struct error *
undo_unknown(struct backing *backing, const char *path, size_t use_count)
{
    bool is_there;
    struct error *error = backing_is_at(backing, path, &is_there);
    if (!error && is_there)
        error = mount_remove(path);
    return error || use_count ? error : backing_detach_unbound(backing);
}

static struct error *
undo_known(struct engine *engine, struct backing *backing, const mount_record *record,
           size_t use_count)
{
    struct error *error = NULL;
    if (!capability_is_block(record->capability))
        error = mount_remove(record->path);
    if (!error && use_count <= 1)
        error = backing_detach(backing);
    return error ? error : mount_rows_delete(engine, record);
}

static struct error *
undo_held(struct engine *engine, const volume_record *volume, const char *path, struct arena *arena)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct mount_list rows;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    if (!error)
        error = backing_find(engine, volume, &backing);
    if (error)
        return error;
    mount_record *record = mount_rows_find(&rows, path);
    error = use_drop_unmounted(engine, &backing, &rows, NULL, NULL);
    if (!error)
        error = stage_check_unpublished(&rows, path);
    if (error)
        return error;
    return record ? undo_known(engine, &backing, record, rows.count)
                  : undo_unknown(&backing, path, rows.count);
}

/* A volume that is moving, or has moved, is not staged here. */
struct error *
stage_undo(struct engine *engine, const char *handle, const char *path)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = held_take_any(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (!volume_may_be_in_use(held.record))
        return NULL;
    return undo_held(engine, held.record, path, &arena);
}
