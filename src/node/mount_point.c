/* SPDX-License-Identifier: Apache-2.0 */
/* What is mounted at a path: see mount_point.h. */
#include "node/mount_point.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "node/mount.h"

/* ---- what is there ---- */

bool
mount_point_is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && lstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

bool
mount_point_is_read_only(const char *path)
{
    struct statvfs found;
    return statvfs(path, &found) == 0 && (found.f_flag & ST_RDONLY);
}

bool
mount_point_is_bound(const char *source, const char *path, bool read_only)
{
    return mount_point_is_same_file(source, path) && mount_is_point(path) &&
           mount_point_is_read_only(path) == read_only;
}

bool
mount_point_is_device_at(const char *device, const char *path)
{
    struct stat wanted, found;
    return stat(device, &wanted) == 0 && lstat(path, &found) == 0 && S_ISBLK(found.st_mode) &&
           wanted.st_rdev == found.st_rdev;
}

/* btrfs has device numbers of its own, so this needs the table of mounts. */
bool
mount_point_is_mounted_from(const char *device, const char *path)
{
    struct stat wanted, found;
    struct mount_point point;
    if (!mount_is_point(path) || stat(device, &wanted) != 0 || stat(path, &found) != 0)
        return false;
    if (found.st_dev == wanted.st_rdev)
        return true;
    struct error *error AUTO(error_cleanup) = mount_find(path, &point);
    return !error && point.exists && strcmp(point.device, device) == 0;
}

/* ---- mounting ---- */

struct error *
mount_point_clear(const char *path, bool is_known)
{
    struct stat found;
    if (!mount_is_point(path))
        return NULL;
    if (!is_known && stat(path, &found) == 0)
        return error_new(CODE_FAILED_PRECONDITION,
                         "something else is mounted at %s; unmount it, or use another path", path);
    return mount_remove(path);
}

/* Refuses a link: a mount on its target would not be found under this path again. */
struct error *
mount_point_make_directory(const char *path)
{
    struct stat found;
    if (mkdir(path, 0750) == 0)
        return NULL;
    if (errno == ENOENT)
        return error_new(CODE_FAILED_PRECONDITION, "the directory above %s is missing", path);
    if (errno != EEXIST)
        return error_from_errno(errno, "make the directory %s", path);
    if (lstat(path, &found) != 0)
        return error_from_errno(errno, "look at %s", path);
    if (!S_ISDIR(found.st_mode))
        return error_new(CODE_FAILED_PRECONDITION, "%s exists and is not a directory", path);
    return NULL;
}

static struct error *
make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
    if (fd >= 0) {
        close(fd);
        return NULL;
    }
    if (errno == ENOENT)
        return error_new(CODE_FAILED_PRECONDITION, "the directory above %s is missing", path);
    if (errno == ELOOP || errno == EISDIR)
        return error_new(CODE_FAILED_PRECONDITION, "%s exists and is not a file", path);
    return error_from_errno(errno, "make the file %s", path);
}

struct error *
mount_point_bind_device(const char *device, const char *path, bool is_known)
{
    if (mount_point_is_device_at(device, path))
        return NULL;
    struct error *error = mount_point_clear(path, is_known);
    if (!error)
        error = make_file(path);
    return error ? error : mount_bind(device, path, NULL, false);
}

/* ---- unmounting ---- */

struct error *
mount_point_remove(const char *path)
{
    struct stat found;
    struct error *error = mount_remove(path);
    if (error || lstat(path, &found) != 0)
        return error;
    int failed = S_ISDIR(found.st_mode)                         ? rmdir(path)
                 : S_ISREG(found.st_mode) && found.st_size == 0 ? unlink(path)
                                                                : (errno = EEXIST, -1);
    if (failed && errno != ENOENT)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s has contents that are not the volume's; look at them and remove it",
                         path);
    return NULL;
}
