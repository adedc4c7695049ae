/* SPDX-License-Identifier: Apache-2.0 */
/* Making and undoing mounts: see mount.h. The table of mounts is in mount_table.c. */
#include "node/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define BUSY_TRIES 50u
#define BUSY_PAUSE_NS 20000000L

/* Asks the kernel about one path: the table is long if there are many volumes. */
bool
mount_is_point(const char *path)
{
    struct statx found;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &found) != 0)
        return errno != ENOENT && errno != ENOTDIR && errno != EACCES;
    return found.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* ---- making ---- */

static const struct {
    const char *name;
    unsigned long set;
    unsigned long clear;
} known_options[] = {
    {"rw", 0, MS_RDONLY},
    {"ro", MS_RDONLY, 0},
    {"suid", 0, MS_NOSUID},
    {"nosuid", MS_NOSUID, 0},
    {"dev", 0, MS_NODEV},
    {"nodev", MS_NODEV, 0},
    {"exec", 0, MS_NOEXEC},
    {"noexec", MS_NOEXEC, 0},
    {"async", 0, MS_SYNCHRONOUS},
    {"sync", MS_SYNCHRONOUS, 0},
    {"atime", 0, MS_NOATIME},
    {"noatime", MS_NOATIME, 0},
    {"diratime", 0, MS_NODIRATIME},
    {"nodiratime", MS_NODIRATIME, 0},
    {"relatime", MS_RELATIME, 0},
    {"norelatime", 0, MS_RELATIME},
    {"strictatime", MS_STRICTATIME, 0},
    {"lazytime", MS_LAZYTIME, 0},
    {"dirsync", MS_DIRSYNC, 0},
    {"defaults", 0, 0},
};

static bool
apply_option(const char *option, unsigned long *flags)
{
    for (size_t i = 0; i < COUNT_OF(known_options); i++) {
        if (strcmp(known_options[i].name, option) != 0)
            continue;
        *flags = (*flags | known_options[i].set) & ~known_options[i].clear;
        return true;
    }
    return false;
}

/* Flags of a mount point, not of the file system. */
#define POINT_FLAGS                                                                                \
    (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME | MS_RELATIME |     \
     MS_STRICTATIME)

bool
mount_is_point_option(const char *option)
{
    unsigned long flags = 0;
    return apply_option(option, &flags) && !(flags & ~(unsigned long)POINT_FLAGS);
}

/* Values may be secret: errors contain only the name. */
static int
name_size(const char *option)
{
    return (int)strcspn(option, "=");
}

static struct error *
read_point_options(const char *const *options, unsigned long *flags)
{
    for (; options && *options; options++) {
        if (!mount_is_point_option(*options))
            return error_new(CODE_INVALID_ARGUMENT,
                             "a directory does not take the mount flag \"%.*s\", only ro, nosuid, "
                             "nodev, noexec, noatime, nodiratime, relatime and strictatime",
                             name_size(*options), *options);
        apply_option(*options, flags);
    }
    return NULL;
}

/* The flags in force: a change replaces all of them. */
static unsigned long
inherited_flags(const char *path)
{
    struct statvfs found;
    if (statvfs(path, &found) != 0)
        return 0;
    return found.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME |
                           ST_NODIRATIME | ST_RELATIME);
}

struct error *
mount_bind(const char *from, const char *to, const char *const *options, bool read_only)
{
    unsigned long flags = 0;
    struct error *error = read_point_options(options, &flags);
    if (error)
        return error;
    flags |= read_only ? MS_RDONLY : 0;
    if (mount(from, to, NULL, MS_BIND, NULL) != 0)
        return error_from_errno(errno, "bind %s to %s", from, to);
    if (!flags ||
        mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | flags | inherited_flags(to), NULL) == 0)
        return NULL;
    error = error_from_errno(errno, "set the mount flags of %s", to);
    umount2(to, MNT_DETACH);
    return error;
}

/*
 * Whether the kernel accepts it. On older kernels a file system parses its flags only when it is
 * mounted, and this reports none as bad.
 */
static bool
takes_option(const char *fs_type, const char *option)
{
    int context AUTO(files_close) = fsopen(fs_type, FSOPEN_CLOEXEC);
    char *key AUTO(memory_cleanup) = memory_string(option);
    char *value = strchr(key, '=');
    if (value)
        *value++ = '\0';
    return context < 0 ||
           fsconfig(context, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, value, 0) == 0;
}

/* Names the bad one of the file system's own flags; or all of them, if it cannot be found. */
static struct error *
name_bad_option(const char *to, const char *fs_type, const char *const *options)
{
    struct buffer names AUTO(buffer_clear) = {0};
    unsigned long flags = 0;
    for (; options && *options; options++) {
        if (apply_option(*options, &flags))
            continue;
        if (!takes_option(fs_type, *options))
            return error_new(CODE_INVALID_ARGUMENT,
                             "mount %s: %s does not take the mount flag \"%.*s\"", to, fs_type,
                             name_size(*options), *options);
        buffer_print(&names, "%s%.*s", names.size ? ", " : "", name_size(*options), *options);
    }
    return error_new(CODE_INVALID_ARGUMENT, "mount %s: %s does not take these mount flags: %s", to,
                     fs_type, buffer_text(&names));
}

struct error *
mount_device(const char *device, const char *to, const char *fs_type, const char *const *options,
             bool read_only)
{
    unsigned long flags = 0;
    struct buffer data AUTO(buffer_clear) = {0};
    for (const char *const *option = options; option && *option; option++)
        if (!apply_option(*option, &flags))
            buffer_print(&data, "%s%s", data.size ? "," : "", *option);
    flags |= read_only ? MS_RDONLY : 0;
    bool has_own_flags = data.size > 0;
    /* A clone has its source's UUID, and both may be mounted. */
    if (strcmp(fs_type, "xfs") == 0)
        buffer_print(&data, "%snouuid", data.size ? "," : "");
    if (mount(device, to, fs_type, flags, data.size ? buffer_text(&data) : NULL) == 0)
        return NULL;
    int failed = errno;
    if (failed == EINVAL && has_own_flags)
        return name_bad_option(to, fs_type, options);
    if (failed == EBUSY)
        return error_new(
            CODE_FAILED_PRECONDITION,
            "mount %s: the file system is mounted elsewhere, and cannot be mounted for "
            "writing and for reading only at a time",
            to);
    return error_from_errno(failed, "mount %s on %s as %s", device, to, fs_type);
}

/*
 * A snapshot that syncs the file system keeps it open for a moment, so this waits for a while.
 * Other users may keep it open forever.
 */
struct error *
mount_remove(const char *path)
{
    for (unsigned tries = 0;;) {
        if (umount2(path, UMOUNT_NOFOLLOW) == 0)
            continue;
        if (errno == EINVAL || errno == ENOENT)
            return NULL; /* nothing is mounted there, or the path does not exist */
        if (errno != EBUSY || ++tries == BUSY_TRIES)
            return error_from_errno(errno, "unmount %s", path);
        nanosleep(&(struct timespec){.tv_nsec = BUSY_PAUSE_NS}, NULL);
    }
}
