/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is below the mounts of a volume: see backing.h.
 *
 * Whether a mount shows a volume is determined from the files themselves (device and inode, or the
 * device below a file system), not from the table of mounts: that takes one system call for any
 * number of volumes, and a path cannot mislead it.
 */
#include "node/backing.h"

#include <errno.h>
#include <unistd.h>

#include "node/mount.h"
#include "node/mount_point.h"
#include "volumes/volume.h"

static struct error *
forgive_absence(struct error *error)
{
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return NULL;
}

/* ---- finding ---- */

void
backing_clear(struct backing *backing)
{
    loop_release(&backing->own);
    loop_release(&backing->reader);
}

/* If the image file was removed while attached, the device is found by the handle in its name. */
struct error *
backing_find(struct engine *engine, const volume_record *volume, struct backing *out)
{
    out->is_image = volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE;
    out->path[0] = '\0';
    struct error *error = volume_find_data(engine, volume, out->path, sizeof out->path);
    bool is_gone = error && error->code == CODE_NOT_FOUND;
    if (is_gone)
        out->path[0] = '\0';
    error = forgive_absence(error);
    if (error || !out->is_image)
        return error;
    return forgive_absence(is_gone ? loop_find_below(volume->handle, &out->own)
                                   : loop_find(out->path, &out->own));
}

struct error *
backing_find_reader(struct backing *backing)
{
    if (backing->knows_reader || backing->own.fd < 0)
        return NULL;
    struct error *error = forgive_absence(loop_find(backing->own.path, &backing->reader));
    backing->knows_reader = !error;
    return error;
}

static struct error *
device_is_at(struct backing *backing, const char *path, bool *is_there)
{
    *is_there = false;
    if (backing->own.fd < 0)
        return NULL;
    *is_there = mount_point_is_mounted_from(backing->own.path, path) ||
                mount_point_is_device_at(backing->own.path, path);
    struct error *error = *is_there ? NULL : backing_find_reader(backing);
    if (!error && backing->reader.fd >= 0)
        *is_there |= mount_point_is_device_at(backing->reader.path, path);
    return error;
}

struct error *
backing_is_at(struct backing *backing, const char *path, bool *is_there)
{
    if (backing->is_image)
        return device_is_at(backing, path, is_there);
    *is_there =
        backing->path[0] && mount_point_is_same_file(backing->path, path) && mount_is_point(path);
    return NULL;
}

/* ---- attaching ---- */

static unsigned
sector_flag(const volume_record *volume)
{
    return volume->sector_bytes == 512 ? LOOP_SMALL_BLOCKS : 0;
}

struct error *
backing_attach(struct engine *engine, const volume_record *volume, unsigned flags,
               struct loop_device *out)
{
    char file[PATH_MAX];
    struct error *error = volume_find_data(engine, volume, file, sizeof file);
    return error ? error : loop_attach(file, flags | LOOP_DIRECT_IO | sector_flag(volume), out);
}

struct error *
backing_attach_published(const volume_record *volume, struct backing *backing, bool read_only,
                         const char **device)
{
    if (!read_only) {
        *device = backing->own.path;
        return NULL;
    }
    *device = backing->reader.path;
    loop_release(&backing->reader);
    return loop_attach(backing->own.path, LOOP_READ_ONLY | sector_flag(volume), &backing->reader);
}

/* ---- detaching ---- */

struct error *
backing_detach_reader(struct backing *backing)
{
    struct error *error = backing_find_reader(backing);
    return error || backing->reader.fd < 0 ? error : loop_drop(backing->reader.path);
}

struct error *
backing_detach(struct backing *backing)
{
    struct error *error = backing_detach_reader(backing);
    if (error || backing->own.fd < 0)
        return error;
    return backing->path[0] ? loop_detach(backing->path) : loop_drop(backing->own.path);
}

struct error *
backing_detach_unbound(struct backing *backing)
{
    bool is_bound = false;
    struct error *error = backing_find_reader(backing);
    if (!error && backing->own.fd >= 0)
        error = mount_find_device(backing->own.path, &is_bound);
    if (!error && backing->reader.fd >= 0 && !is_bound)
        error = mount_find_device(backing->reader.path, &is_bound);
    return error || is_bound ? error : backing_detach(backing);
}

/* ---- flushing and growing ---- */

struct error *
backing_flush(struct backing *backing)
{
    if (backing->own.fd >= 0 && fsync(backing->own.fd) != 0)
        return error_from_errno(errno, "flush %s", backing->own.path);
    return NULL;
}

struct error *
backing_resize(struct backing *backing)
{
    struct error *error = backing_find_reader(backing);
    if (!error && backing->own.fd >= 0)
        error = loop_resize(&backing->own);
    if (!error && backing->reader.fd >= 0)
        error = loop_resize(&backing->reader);
    return error;
}
