/* SPDX-License-Identifier: Apache-2.0 */
/* The file system in an image: see image_fs.h. */
#include "node/image_fs.h"

#include <limits.h>
#include <string.h>

#include "backends/format.h"
#include "node/backing.h"
#include "node/mount.h"
#include "volumes/capability.h"
#include "volumes/data_lock.h"
#include "volumes/freeze.h"
#include "volumes/volume.h"

struct error *
image_fs_make(const volume_record *volume, const char *device, struct arena *arena)
{
    struct text_map parameters = volume_parameters(volume, arena);
    const char *label = text_map_find(&parameters, "label");
    char found[FORMAT_NAME_SIZE] = "";
    struct error *error = volume->blank ? format_probe(device, found, sizeof found) : NULL;
    if (error)
        return error;
    /* Anything in a blank image was left by an interrupted run of this function. */
    return found[0] ? format_again(device, volume->fs_type, label)
                    : format_ensure(device, volume->fs_type, label);
}

struct error *
image_fs_ensure(struct engine *engine, struct held_volume *held, const char *device,
                struct arena *arena)
{
    if (held->record->formatted_bytes)
        return NULL;
    struct error *error = image_fs_make(held->record, device, arena);
    if (error)
        return error;
    held->record->formatted_bytes = held->record->size_bytes;
    return held_save(engine, held, arena);
}

static struct error *
no_file_system(const char *found)
{
    if (!found[0])
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is a raw block device without a file system: make ext4, xfs "
                         "or btrfs on it first, or create a volume with a file system");
    return error_new(CODE_FAILED_PRECONDITION,
                     "the volume is a raw block device with \"%s\" on it, which is no file system "
                     "that can be mounted (ext4, xfs, btrfs)",
                     found);
}

struct error *
image_fs_find(struct engine *engine, volume_record *volume, struct arena *arena, bool *is_new)
{
    char file[PATH_MAX], found[FORMAT_NAME_SIZE] = "";
    *is_new = false;
    if (volume->kind != SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE ||
        !capability_any_block(volume))
        return NULL;
    if (volume->fs_type[0] && !volume->formatted_bytes)
        return NULL; /* the first mount makes it */
    struct error *error = volume_find_data(engine, volume, file, sizeof file);
    if (!error)
        error = format_probe(file, found, sizeof found);
    if (error)
        return error;
    if (!format_is_known(found))
        return no_file_system(found);
    *is_new = strcmp(found, volume->fs_type) != 0;
    volume->fs_type = arena_string(arena, found);
    if (!volume->formatted_bytes)
        volume->formatted_bytes = 1; /* of a size of its own: once mounted, it grows */
    return NULL;
}

struct error *
image_fs_mount(const volume_record *volume, const char *device, const char *path,
               const char *const *flags, bool read_only)
{
    struct error *error = mount_device(device, path, volume->fs_type, flags, read_only);
    if (!error || error->code == CODE_INVALID_ARGUMENT || error->code == CODE_FAILED_PRECONDITION)
        return error;
    error_free(error);
    error = format_check(device, volume->fs_type);
    return error ? error : mount_device(device, path, volume->fs_type, flags, read_only);
}

/*
 * If the kernel replays an xfs log from before the growth on a disk from after it, it does not find
 * the new space: "Structure needs cleaning", for the volume after a power failure and for each of
 * its snapshots. A freeze leaves nothing in the log to replay.
 */
static struct error *
empty_log(struct engine *engine, volume_record *volume)
{
    struct freeze *freeze;
    struct error *error = freeze_begin(engine, &volume, 1, &freeze);
    return error ? error : freeze_end(freeze);
}

struct error *
image_fs_grow(struct engine *engine, struct held_volume *held, const char *device,
              const char *mount_path, struct arena *arena)
{
    volume_record *volume = held->record;
    if (volume->formatted_bytes >= volume->size_bytes)
        return NULL;
    struct error *error = format_grow(device, volume->fs_type, mount_path);
    if (!error && strcmp(volume->fs_type, "xfs") == 0)
        error = empty_log(engine, volume);
    if (error)
        return error;
    volume->formatted_bytes = volume->size_bytes;
    return held_save(engine, held, arena);
}

static bool
is_attached(const char *file)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct error *error AUTO(error_cleanup) = loop_find(file, &device);
    return !error || error->code != CODE_NOT_FOUND;
}

struct error *
image_fs_grow_unmounted(struct engine *engine, struct held_volume *held, struct arena *arena)
{
    volume_record *volume = held->record;
    char file[PATH_MAX];
    if (!volume->formatted_bytes || volume->formatted_bytes >= volume->size_bytes ||
        format_grows_mounted(volume->fs_type))
        return NULL;
    struct error *error = volume_find_data(engine, volume, file, sizeof file);
    if (error || is_attached(file))
        return error;
    error = format_grow_file(file);
    if (error)
        return error;
    volume->formatted_bytes = volume->size_bytes;
    return held_save(engine, held, arena);
}

struct error *
image_fs_expand(struct engine *engine, struct held_volume *held, const char *mount_path,
                struct arena *arena)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    const volume_record *volume = held->record;
    struct error *error = backing_find(engine, volume, &backing);
    if (!error)
        error = backing_resize(&backing);
    if (error || backing.own.fd < 0 || !mount_path)
        return error;
    /* No copy may contain a half-grown file system. */
    error = data_lock_wait(engine, &volume_rows, volume->handle, DATA_LOCK_WAIT_MS, &lock);
    return error ? error : image_fs_grow(engine, held, backing.own.path, mount_path, arena);
}
