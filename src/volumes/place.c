/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume at a path: see place.h.
 *
 * Whether a mount is right is asked of the files themselves (device and inode, or the device below a file system), not of the table of mounts:
 * that is one look whatever the number of volumes, and it cannot be fooled by a path.
 *
 * The loop device of a mounted file system goes by itself with the mount. That of a raw image has no such user: it stays until the volume is
 * unstaged, and the sweep finds those that a crash has left.
 */
#include "volumes/place.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/format.h"
#include "backends/loop.h"
#include "volumes/copy.h"
#include "volumes/image_fs.h"
#include "volumes/io_limits.h"
#include "volumes/mount_group.h"
#include "volumes/mounts.h"
#include "volumes/points.h"
#include "volumes/upkeep.h"
#include "volumes/volume.h"

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* ---- capabilities ---- */

bool
place_is_block(const volume_capability *capability)
{
    return capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
}

/* Of ro and rw the last counts. */
static bool
has_flag_read_only(const volume_capability *capability)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    bool is_set = false;
    if (place_is_block(capability))
        return false;
    for (const char *const *flag = points_mount_flags(capability, &arena); *flag; flag++)
        if (strcmp(*flag, "ro") == 0 || strcmp(*flag, "rw") == 0)
            is_set = (*flag)[1] == 'o';
    return is_set;
}

bool
place_reads_only(const volume_capability *capability)
{
    return capability->access_mode->mode == MODE(SINGLE_NODE_READER_ONLY) ||
           capability->access_mode->mode == MODE(MULTI_NODE_READER_ONLY) ||
           has_flag_read_only(capability);
}

static bool
is_image(const volume_record *volume)
{
    return volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE;
}

struct error *
place_check_capability(const volume_record *volume, const volume_capability *capability)
{
    if (place_is_block(capability)) {
        if (is_image(volume))
            return NULL;
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is a directory tree and has no block device");
    }
    const char *wanted = capability->mount->fs_type;
    const char *group = capability->mount->volume_mount_group;
    struct error *error = group[0] ? mount_group_check(group) : NULL;
    if (error)
        return error;
    if (is_image(volume) && !volume->fs_type[0])
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is a raw block device and has no file system to mount");
    if (!wanted[0] || strcmp(wanted, is_image(volume) ? volume->fs_type : "none") == 0)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION, "the volume is %s, not %s",
                     is_image(volume) ? volume->fs_type : "a directory tree", wanted);
}

/* ---- trees ---- */

static struct error *
place_tree(struct engine *engine, const volume_record *volume, const struct use *use, bool is_known,
           struct arena *arena)
{
    char source[PATH_MAX];
    struct error *error = volume_find_data(engine, volume, source, sizeof source);
    if (error || points_is_bound(source, use->path, use->read_only))
        return error;
    error = points_clear(use->path, is_known);
    if (!error)
        error = points_make_directory(use->path);
    if (!error)
        error = mounts_bind(source, use->path, points_mount_flags(use->capability, arena),
                            use->read_only);
    return error;
}

/* ---- images ---- */

static unsigned
sector_flag(const volume_record *volume)
{
    return volume->sector_bytes == 512 ? LOOP_SMALL_BLOCKS : 0;
}

static struct error *
attach_device(struct engine *engine, const volume_record *volume, unsigned flags,
              struct loop_device *out)
{
    char file[PATH_MAX];
    struct error *error = volume_find_data(engine, volume, file, sizeof file);
    return error ? error : loop_attach(file, flags | LOOP_DIRECT_IO | sector_flag(volume), out);
}

/* A mount is never refused because it could not grow: there is no less than before. */
static void
tell_of_growth(struct engine *engine, const volume_record *volume, struct error *error)
{
    if (error)
        log_warn(engine->log, "a file system did not grow to the size of its volume",
                 LOG_TEXT("volume", volume->handle), LOG_TEXT("error", error->message));
    error_free(error);
}

static struct error *
place_file_system(struct engine *engine, struct held_volume *held, const struct use *use,
                  bool is_known, struct arena *arena)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    if (!use->read_only)
        tell_of_growth(engine, held->record, image_fs_grow_unmounted(engine, held, arena));
    struct error *error = attach_device(engine, held->record, LOOP_AUTOCLEAR, &device);
    if (error || (points_is_mounted_from(device.path, use->path) &&
                  points_is_read_only(use->path) == use->read_only))
        return error;
    error = image_fs_ensure(engine, held, device.path, arena);
    if (!error)
        error = points_clear(use->path, is_known);
    if (!error)
        error = points_make_directory(use->path);
    if (!error)
        error = image_fs_mount(held->record, device.path, use->path,
                               points_mount_flags(use->capability, arena), use->read_only);
    if (!error && !use->read_only) {
        tell_of_growth(engine, held->record,
                       image_fs_grow(engine, held, device.path, use->path, arena));
        place_try_parameters(engine, held->record, use, arena);
    }
    return error;
}

/* ---- either ---- */

/*
 * A copy that is made while an image gets its first file system would not know whether somebody's data is in what it got. And where copies take
 * their time, nobody may begin to write to their source.
 */
static struct error *
await_copies(struct engine *engine, const volume_record *volume, const struct use *use,
             struct key **out)
{
    bool is_blank = volume->fs_type[0] && !volume->formatted_bytes;
    bool is_used;
    struct data data = volume_data(volume);
    if (!is_image(volume) || (!is_blank && backend_cuts_images(engine->backend, &data, NULL)))
        return NULL;
    struct error *error = place_is_used(engine, volume, use, &is_used);
    return error || is_used
               ? error
               : copy_await_alone(engine, &volume_rows, volume->handle, COPY_WAIT_MS, out);
}

struct error *
place_volume(struct engine *engine, struct held_volume *held, const struct use *use, bool is_known,
             struct arena *arena)
{
    struct key *alone AUTO(keys_release) = NULL;
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct error *error = await_copies(engine, held->record, use, &alone);
    if (error)
        return error;
    if (place_is_block(use->capability))
        return attach_device(engine, held->record, 0, &device);
    error = is_image(held->record) ? place_file_system(engine, held, use, is_known, arena)
                                   : place_tree(engine, held->record, use, is_known, arena);
    if (error)
        return error;
    error = points_apply_group(use);
    if (error && !is_known)
        error_free(place_remove(use->path)); /* nobody will know of it */
    return error;
}

/* ---- publications ---- */

/* The device that a publication shows: the volume's own, or one upon it that only reads. */
static struct error *
find_device(struct engine *engine, const volume_record *volume, bool read_only,
            struct loop_device *out)
{
    struct loop_device own AUTO(loop_release) = LOOP_NONE;
    struct error *error = attach_device(engine, volume, 0, read_only ? &own : out);
    return error || !read_only ? error
                               : loop_attach(own.path, LOOP_READ_ONLY | sector_flag(volume), out);
}

static struct error *
place_block(struct engine *engine, const volume_record *volume, const struct use *use,
            bool is_known)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    struct error *error = find_device(engine, volume, use->read_only, &device);
    return error ? error : points_bind_device(device.path, use->path, is_known);
}

struct error *
place_staged(struct engine *engine, const volume_record *volume, const struct use *use,
             bool is_known, struct arena *arena)
{
    if (place_is_block(use->capability))
        return place_block(engine, volume, use, is_known);
    return points_bind_staged(use, is_known, arena);
}

/* ---- looking ---- */

static struct error *
forgive_absence(struct error *error)
{
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return NULL;
}

/* The device of an image. Where the file was removed below its device, the handle in its name tells. */
static struct error *
find_own_device(struct engine *engine, const volume_record *volume, struct loop_device *out)
{
    char file[PATH_MAX];
    struct error *error = volume_find_data(engine, volume, file, sizeof file);
    if (!error)
        return loop_find(file, out);
    if (error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return loop_find_below(volume->handle, out);
}

/* The devices of an image that there are: `fd` stays -1 where there is none. */
static struct error *
find_devices(struct engine *engine, const volume_record *volume, struct loop_device *own,
             struct loop_device *reader)
{
    struct error *error = find_own_device(engine, volume, own);
    if (!error)
        error = loop_find(own->path, reader);
    return forgive_absence(error);
}

static struct error *
image_is_at(struct engine *engine, const volume_record *volume, const char *path, bool *is_there)
{
    struct loop_device own AUTO(loop_release) = LOOP_NONE;
    struct loop_device reader AUTO(loop_release) = LOOP_NONE;
    struct error *error = find_devices(engine, volume, &own, &reader);
    *is_there =
        !error && own.fd >= 0 &&
        (!path || points_is_mounted_from(own.path, path) || points_is_device_at(own.path, path) ||
         (reader.fd >= 0 && points_is_device_at(reader.path, path)));
    return error;
}

struct error *
place_is_at(struct engine *engine, const volume_record *volume, const char *path, bool *is_there)
{
    char source[PATH_MAX];
    if (is_image(volume))
        return image_is_at(engine, volume, path, is_there);
    struct error *error = volume_find_data(engine, volume, source, sizeof source);
    *is_there = !error && points_is_same_file(source, path) && mounts_is_point(path);
    return forgive_absence(error);
}

static struct error *
is_lost_tree(struct engine *engine, const volume_record *volume, bool *is_lost)
{
    char source[PATH_MAX];
    struct error *error =
        is_image(volume) ? NULL : volume_find_data(engine, volume, source, sizeof source);
    *is_lost = error && error->code == CODE_NOT_FOUND;
    return forgive_absence(error);
}

struct error *
place_is_used(struct engine *engine, const volume_record *volume, const struct use *use,
              bool *is_used)
{
    bool has_no_path = place_is_block(use->capability) && !use->staging_path[0];
    bool is_lost;
    struct error *error = is_lost_tree(engine, volume, &is_lost);
    if (error)
        return error;
    if (!is_lost)
        return place_is_at(engine, volume, has_no_path ? NULL : use->path, is_used);
    /* There is nothing left to compare it with: whatever is mounted there counts. */
    *is_used = mounts_is_point(use->path);
    return NULL;
}

/* ---- parameters ---- */

static struct error *
set_label(const volume_record *volume, const struct use *use, const struct text_map *parameters)
{
    const char *label = text_map_find(parameters, "label");
    if (!label || !volume->fs_type[0] || use->read_only || place_is_block(use->capability))
        return NULL;
    return format_set_label(use->path, volume->fs_type, label);
}

static struct error *
limit_device(const struct loop_device *device, const struct use *use,
             const struct text_map *parameters)
{
    struct stat found;
    if (device->fd < 0 || fstat(device->fd, &found) != 0)
        return NULL;
    struct io_limits where = {PLACE_CGROUP_ROOT, use->path, found.st_rdev};
    return io_limits_apply(&where, parameters);
}

struct error *
place_limit_io(struct engine *engine, const volume_record *volume, const struct use *use,
               struct arena *arena)
{
    struct text_map parameters = volume_parameters(volume, arena);
    struct loop_device own AUTO(loop_release) = LOOP_NONE;
    struct loop_device reader AUTO(loop_release) = LOOP_NONE;
    bool is_for_a_pod = use->staging_path[0] || volume->ephemeral;
    if (!io_limits_are_set(&parameters) || !is_for_a_pod)
        return NULL;
    if (io_limits_must_be_renewed(PLACE_CGROUP_ROOT))
        upkeep_renew_limits(engine);
    struct error *error = find_devices(engine, volume, &own, &reader);
    bool has_reader = use->read_only && place_is_block(use->capability);
    return error ? error : limit_device(has_reader ? &reader : &own, use, &parameters);
}

struct error *
place_apply_parameters(struct engine *engine, const volume_record *volume, const struct use *use,
                       struct arena *arena)
{
    struct text_map parameters = volume_parameters(volume, arena);
    struct error *error = set_label(volume, use, &parameters);
    return error ? error : place_limit_io(engine, volume, use, arena);
}

void
place_try_parameters(struct engine *engine, const volume_record *volume, const struct use *use,
                     struct arena *arena)
{
    struct error *error AUTO(error_cleanup) = place_apply_parameters(engine, volume, use, arena);
    if (error)
        log_warn(engine->log, "a parameter of a volume is not in force",
                 LOG_TEXT("volume", volume->handle), LOG_TEXT("error", error->message));
}

/* ---- removing ---- */

struct error *
place_remove(const char *path)
{
    return mounts_remove(path);
}

static struct error *
detach_devices(struct engine *engine, const volume_record *volume, const struct loop_device *own,
               const struct loop_device *reader, bool only_reader)
{
    char file[PATH_MAX];
    struct error *error = reader->fd >= 0 ? loop_drop(reader->path) : NULL;
    if (error || own->fd < 0 || only_reader)
        return error;
    error = volume_find_data(engine, volume, file, sizeof file);
    if (!error)
        return loop_detach(file);
    error = forgive_absence(error);
    return error ? error : loop_drop(own->path);
}

struct error *
place_release_devices(struct engine *engine, const volume_record *volume, bool only_reader)
{
    struct loop_device own AUTO(loop_release) = LOOP_NONE;
    struct loop_device reader AUTO(loop_release) = LOOP_NONE;
    if (!is_image(volume))
        return NULL;
    struct error *error = find_devices(engine, volume, &own, &reader);
    return error ? error : detach_devices(engine, volume, &own, &reader, only_reader);
}

struct error *
place_release_unbound(struct engine *engine, const volume_record *volume)
{
    bool is_bound = false;
    struct loop_device own AUTO(loop_release) = LOOP_NONE;
    struct loop_device reader AUTO(loop_release) = LOOP_NONE;
    if (!is_image(volume))
        return NULL;
    struct error *error = find_devices(engine, volume, &own, &reader);
    if (!error && own.fd >= 0)
        error = mounts_find_device(own.path, &is_bound);
    if (!error && reader.fd >= 0 && !is_bound)
        error = mounts_find_device(reader.path, &is_bound);
    return error || is_bound ? error : detach_devices(engine, volume, &own, &reader, false);
}

/* ---- flushing and growing ---- */

struct error *
place_flush_device(struct engine *engine, const volume_record *volume)
{
    struct loop_device own AUTO(loop_release) = LOOP_NONE;
    struct error *error = forgive_absence(find_own_device(engine, volume, &own));
    if (!error && own.fd >= 0 && fsync(own.fd) != 0)
        error = error_from_errno(errno, "flush %s", own.path);
    return error;
}

struct error *
place_grow(struct engine *engine, struct held_volume *held, const char *mount_path,
           struct arena *arena)
{
    struct loop_device own AUTO(loop_release) = LOOP_NONE;
    struct loop_device reader AUTO(loop_release) = LOOP_NONE;
    struct key *alone AUTO(keys_release) = NULL;
    if (!is_image(held->record))
        return NULL;
    struct error *error = find_devices(engine, held->record, &own, &reader);
    if (!error && own.fd >= 0)
        error = loop_resize(&own);
    if (!error && reader.fd >= 0)
        error = loop_resize(&reader);
    /* No copy gets a file system that has grown by half. */
    if (!error && own.fd >= 0 && mount_path)
        error = copy_await_alone(engine, &volume_rows, held->record->handle, COPY_WAIT_MS, &alone);
    if (!error && own.fd >= 0 && mount_path)
        error = image_fs_grow(engine, held, own.path, mount_path, arena);
    return error;
}
