/* SPDX-License-Identifier: Apache-2.0 */
/* Something at a path of this node: see points.h. */
#include "volumes/points.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "volumes/mount_group.h"
#include "volumes/mounts.h"

/* ---- what is there ---- */

bool
points_is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && lstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

bool
points_is_read_only(const char *path)
{
    struct statvfs found;
    return statvfs(path, &found) == 0 && (found.f_flag & ST_RDONLY);
}

bool
points_is_bound(const char *source, const char *path, bool read_only)
{
    return points_is_same_file(source, path) && mounts_is_point(path) &&
           points_is_read_only(path) == read_only;
}

bool
points_is_device_at(const char *device, const char *path)
{
    struct stat wanted, found;
    return stat(device, &wanted) == 0 && lstat(path, &found) == 0 && S_ISBLK(found.st_mode) &&
           wanted.st_rdev == found.st_rdev;
}

/* btrfs has device numbers of its own: there the table of mounts must say. */
bool
points_is_mounted_from(const char *device, const char *path)
{
    struct stat wanted, found;
    struct mount_point point;
    if (!mounts_is_point(path) || stat(device, &wanted) != 0 || stat(path, &found) != 0)
        return false;
    if (found.st_dev == wanted.st_rdev)
        return true;
    struct error *error AUTO(error_cleanup) = mounts_find(path, &point);
    return !error && point.exists && strcmp(point.device, device) == 0;
}

/* ---- putting something there ---- */

struct error *
points_clear(const char *path, bool is_known)
{
    struct stat found;
    if (!mounts_is_point(path))
        return NULL;
    if (!is_known && stat(path, &found) == 0)
        return error_new(CODE_FAILED_PRECONDITION,
                         "something else is mounted at %s; unmount it, or use another path", path);
    return mounts_remove(path);
}

/* Up to a comma, but for those between quotes: security contexts have them. */
static size_t
flag_size(const char *text)
{
    bool is_quoted = false;
    size_t size = 0;
    for (; text[size] && (is_quoted || text[size] != ','); size++)
        is_quoted ^= text[size] == '"';
    return size;
}

/* Gives how many flags are in the word. `out` NULL: counts only. */
static size_t
split_word(const char *word, struct arena *arena, const char **out)
{
    size_t count = 0;
    while (*word) {
        size_t size = flag_size(word);
        if (size && out)
            out[count] = arena_copy(arena, word, size);
        count += size > 0;
        word += size + (word[size] == ',');
    }
    return count;
}

static const char **
split_flags(const Csi__V1__VolumeCapability__MountVolume *mount, struct arena *arena)
{
    size_t count = 0;
    for (size_t i = 0; i < mount->n_mount_flags; i++)
        count += split_word(mount->mount_flags[i], NULL, NULL);
    const char **flags = arena_alloc(arena, (count + 1) * sizeof *flags);
    count = 0;
    for (size_t i = 0; i < mount->n_mount_flags; i++)
        count += split_word(mount->mount_flags[i], arena, flags + count);
    flags[count] = NULL;
    return flags;
}

const char *const *
points_mount_flags(const volume_capability *capability, struct arena *arena)
{
    return split_flags(capability->mount, arena);
}

/* Those that a publication can have of its own. What the file system was to know, it was told when it was staged. */
static const char *const *
bind_flags(const volume_capability *capability, struct arena *arena)
{
    const char **flags = split_flags(capability->mount, arena);
    size_t count = 0;
    for (size_t i = 0; flags[i]; i++)
        if (mounts_is_point_option(flags[i]))
            flags[count++] = flags[i];
    flags[count] = NULL;
    return flags;
}

/* A link is not what it leads to: what is mounted there would not be found again. */
struct error *
points_make_directory(const char *path)
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
        return error_new(CODE_FAILED_PRECONDITION, "%s is there, and is no directory", path);
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
        return error_new(CODE_FAILED_PRECONDITION, "%s is there, and is no file", path);
    return error_from_errno(errno, "make the file %s", path);
}

struct error *
points_apply_group(const struct use *use)
{
    const char *group = use->capability->mount->volume_mount_group;
    return group[0] && !use->read_only ? mount_group_apply(use->path, group) : NULL;
}

struct error *
points_bind_staged(const struct use *use, bool is_known, struct arena *arena)
{
    if (points_is_bound(use->staging_path, use->path, use->read_only))
        return points_apply_group(use);
    struct error *error = points_clear(use->path, is_known);
    if (!error)
        error = points_make_directory(use->path);
    if (!error)
        error = mounts_bind(use->staging_path, use->path, bind_flags(use->capability, arena),
                            use->read_only);
    if (error)
        return error;
    error = points_apply_group(use);
    if (error)
        error_free(mounts_remove(use->path)); /* nobody will know of it */
    return error;
}

struct error *
points_bind_device(const char *device, const char *path, bool is_known)
{
    if (points_is_device_at(device, path))
        return NULL;
    struct error *error = points_clear(path, is_known);
    if (!error)
        error = make_file(path);
    return error ? error : mounts_bind(device, path, NULL, false);
}

/* ---- and back ---- */

struct error *
points_remove_with_path(const char *path)
{
    struct stat found;
    struct error *error = mounts_remove(path);
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
