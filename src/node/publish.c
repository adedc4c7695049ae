/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing: see publish.h. */
#include "node/publish.h"

#include <string.h>

#include "node/mount.h"
#include "node/mount_point.h"
#include "node/parameters.h"
#include "volumes/volume.h"

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* ---- may it be published there as well? ---- */

/* According to the table in the specification, which includes single-node readers. */
static bool
is_exclusive(const volume_capability *capability)
{
    return capability->access_mode->mode == MODE(SINGLE_NODE_WRITER) ||
           capability->access_mode->mode == MODE(SINGLE_NODE_READER_ONLY) ||
           capability->access_mode->mode == MODE(SINGLE_NODE_SINGLE_WRITER);
}

struct error *
publish_check_others(const struct mount_list *uses, const struct use *use)
{
    for (size_t i = 0; i < uses->count; i++) {
        const mount_record *other = uses->records[i];
        if (!mount_rows_is_publication(other) || strcmp(other->path, use->path) == 0)
            continue;
        if (is_exclusive(other->capability) || is_exclusive(use->capability))
            return error_new(CODE_FAILED_PRECONDITION,
                             "the volume is published at %s, and its access mode allows one place "
                             "only; unpublish it there first",
                             other->path);
    }
    return NULL;
}

struct error *
publish_check_staging(const struct mount_list *uses, const struct use *use,
                      const mount_record **out)
{
    const mount_record *staging = *out = mount_rows_find(uses, use->staging_path);
    if (!staging)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is not staged at \"%s\": call NodeStageVolume first",
                         use->staging_path);
    if (capability_is_block(staging->capability) != capability_is_block(use->capability))
        return error_new(CODE_FAILED_PRECONDITION, "the volume is staged %s",
                         capability_is_block(staging->capability) ? "as a block device"
                                                                  : "as a file system");
    if (staging->read_only && !use->read_only)
        return error_new(CODE_FAILED_PRECONDITION, "the volume is staged for reading only");
    return NULL;
}

static struct error *
check_staged(struct backing *backing, const struct mount_list *uses, const struct use *use)
{
    const mount_record *staging;
    struct error *error = publish_check_staging(uses, use, &staging);
    if (error)
        return error;
    struct use staged = use_of_row(staging);
    bool is_there;
    error = use_is_mounted(backing, &staged, &is_there);
    if (!error && !is_there)
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the volume's staging at %s is gone: call NodeStageVolume again",
                          use->staging_path);
    return error;
}

/* ---- publishing ---- */

/*
 * The flags that a publication can have of its own. The file system got its flags when it was
 * staged.
 */
static const char *const *
bind_flags(const volume_capability *capability, struct arena *arena)
{
    const char **flags = capability_mount_flags(capability, arena);
    size_t count = 0;
    for (size_t i = 0; flags[i]; i++)
        if (mount_is_point_option(flags[i]))
            flags[count++] = flags[i];
    flags[count] = NULL;
    return flags;
}

struct error *
publish_bind_staged(const struct use *use, bool is_known, struct arena *arena)
{
    if (mount_point_is_bound(use->staging_path, use->path, use->read_only))
        return use_apply_group(use);
    struct error *error = mount_point_clear(use->path, is_known);
    if (!error)
        error = mount_point_make_directory(use->path);
    if (!error)
        error = mount_bind(use->staging_path, use->path, bind_flags(use->capability, arena),
                           use->read_only);
    if (error)
        return error;
    error = use_apply_group(use);
    if (error)
        error_free(mount_remove(use->path)); /* there is no record of it */
    return error;
}

static struct error *
bind_block(const volume_record *volume, struct backing *backing, const struct use *use,
           bool is_known)
{
    const char *device;
    struct error *error = backing_attach_published(volume, backing, use->read_only, &device);
    return error ? error : mount_point_bind_device(device, use->path, is_known);
}

/*
 * Writes the row, then mounts. `rows` are those of the volume; if there is one for the path without
 * a mount, it is mounted again.
 */
static struct error *
publish_staged(struct engine *engine, const volume_record *volume, const struct mount_list *rows,
               struct backing *backing, const struct use *use, struct arena *arena)
{
    mount_record *record;
    bool is_new;
    struct error *error = use_record(engine, volume->handle, rows, use, arena, &record, &is_new);
    if (error)
        return error;
    error = capability_is_block(use->capability) ? bind_block(volume, backing, use, !is_new)
                                                 : publish_bind_staged(use, !is_new, arena);
    if (error && is_new)
        error_free(mount_rows_delete(engine, record)); /* the next request repairs what stays */
    if (!error)
        parameters_try(engine, volume, use, backing, arena);
    return error;
}

/* A publication other than the requested one, which is just mounted again. */
static bool
is_other_publication(const mount_record *record, const struct use *wanted)
{
    bool is_wanted = strcmp(record->path, wanted->path) == 0 && !use_conflicts(record, wanted);
    return mount_rows_is_publication(record) && !is_wanted;
}

struct error *
publish_volume(struct engine *engine, const char *handle, const struct use *use)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct mount_list rows;
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (!error)
        error = use_check_capability(held.record, use->capability);
    if (!error)
        error = mount_rows_list(engine, handle, &arena, &rows);
    if (!error)
        error = backing_find(engine, held.record, &backing);
    if (!error)
        error = use_drop_unmounted(engine, &backing, &rows, is_other_publication, use);
    if (!error)
        error = use_check_same(&rows, use);
    if (!error)
        error = check_staged(&backing, &rows, use);
    if (!error)
        error = publish_check_others(&rows, use);
    return error ? error : publish_staged(engine, held.record, &rows, &backing, use, &arena);
}

/* ---- ephemeral volumes ---- */

/* It is deleted when it is unpublished, so it can be published only once. */
static struct error *
check_published_once(const struct mount_list *uses, const char *path)
{
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->records[i]->path, path) != 0)
            return error_new(CODE_FAILED_PRECONDITION,
                             "the ephemeral volume is published at %s already",
                             uses->records[i]->path);
    return NULL;
}

/* Writes the row, then mounts. */
static struct error *
mount_ephemeral(struct engine *engine, struct held_volume *held, const struct mount_list *rows,
                const struct use *use, struct arena *arena)
{
    mount_record *record;
    bool is_new;
    struct error *error =
        use_record(engine, held->record->handle, rows, use, arena, &record, &is_new);
    if (error)
        return error;
    error = stage_mount(engine, held, use, !is_new, arena);
    if (error && is_new)
        error_free(mount_rows_delete(engine, record)); /* the next request repairs what stays */
    if (!error)
        parameters_try(engine, held->record, use, NULL, arena);
    return error;
}

struct error *
publish_ephemeral(struct engine *engine, const char *handle, const struct use *use)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct mount_list uses;
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (!error)
        error = use_check_capability(held.record, use->capability);
    if (!error)
        error = use_list(engine, held.record, &arena, &uses);
    if (!error)
        error = check_published_once(&uses, use->path);
    return error ? error : mount_ephemeral(engine, &held, &uses, use, &arena);
}

/* ---- unpublishing ---- */

/* A mount without a row is ours if it shows the volume: the rows may have been rebuilt. */
static struct error *
check_unknown(struct engine *engine, const volume_record *volume, const char *path)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    bool is_ours = false;
    if (!mount_is_point(path))
        return NULL;
    struct error *error = volume ? backing_find(engine, volume, &backing) : NULL;
    if (!error && volume)
        error = backing_is_at(&backing, path, &is_ours);
    if (error || is_ours)
        return error;
    return error_new(CODE_FAILED_PRECONDITION,
                     "what is mounted at %s was not published by this node: unmount it by hand",
                     path);
}

static bool
reads_raw(const mount_record *record)
{
    return mount_rows_is_publication(record) && record->read_only &&
           capability_is_block(record->capability);
}

bool
publish_is_last_reader(const struct mount_list *uses, const mount_record *gone)
{
    if (!reads_raw(gone))
        return false;
    for (size_t i = 0; i < uses->count; i++)
        if (uses->records[i] != gone && reads_raw(uses->records[i]))
            return false;
    return true;
}

static struct error *
detach_reader(struct engine *engine, const volume_record *volume)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct error *error = backing_find(engine, volume, &backing);
    return error ? error : backing_detach_reader(&backing);
}

/* A volume that is moving, or has moved, is not published here: as one that does not exist. */
struct error *
publish_undo(struct engine *engine, const char *handle, const char *path)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct mount_list rows = {0};
    struct error *error = held_take_any(engine, handle, STAGE_WAIT_MS, &arena, &held);
    error = error_forgive(error, CODE_NOT_FOUND);
    if (!error)
        error = mount_rows_list(engine, handle, &arena, &rows);
    if (error)
        return error;
    const volume_record *volume =
        held.record && volume_may_be_in_use(held.record) ? held.record : NULL;
    const mount_record *record = mount_rows_find(&rows, path);
    if (!record)
        error = check_unknown(engine, volume, path);
    if (!error)
        error = mount_point_remove(path);
    if (!error && record && volume && publish_is_last_reader(&rows, record))
        error = detach_reader(engine, volume);
    return error || !record ? error : mount_rows_delete(engine, record);
}
