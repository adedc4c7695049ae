/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts: see mount.h.
 *
 * libmount could parse the table and the options, but it is not to be had as a static library and
 * would bring two others along; what is needed of it is one line of fscanf and a table of flags.
 */
#include "node/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "backends/files.h"
#include "base/buffer.h"
#include "base/memory.h"

/* ---- the table ---- */

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void
unescape(char *text)
{
    char *out = text;
    for (char *in = text; *in; out++) {
        if (in[0] == '\\' && in[1] && in[2] && in[3]) {
            *out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 4;
        } else {
            *out = *in++;
        }
    }
    *out = '\0';
}

static bool
has_option(const char *options, const char *wanted)
{
    size_t size = strlen(wanted);
    for (const char *at = options; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, wanted, size) == 0 && (at[size] == ',' || at[size] == '\0'))
            return true;
    }
    return false;
}

#define BUSY_TRIES 50u
#define BUSY_PAUSE_NS 20000000L
#define FIELDS 6 /* that every line has */

/* 36 35 98:0 /root /point options optional... - type device options */
static bool
split_line(char *line, char *fields[FIELDS], char **save)
{
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < FIELDS; i++)
        if (!(fields[i] = strtok_r(i ? NULL : line, " ", save)))
            return false;
    unescape(fields[4]);
    return true;
}

static void
read_line(char *line, const char *path, struct mount_point *out)
{
    char *save = NULL;
    char *fields[FIELDS];
    if (!split_line(line, fields, &save) || strcmp(fields[4], path) != 0)
        return;
    char *field = strtok_r(NULL, " ", &save);
    while (field && strcmp(field, "-") != 0)
        field = strtok_r(NULL, " ", &save);
    char *type = strtok_r(NULL, " ", &save);
    char *device = strtok_r(NULL, " ", &save);
    if (!type || !device)
        return;
    unescape(fields[3]);
    unescape(device);
    out->exists = true;
    out->read_only = has_option(fields[5], "ro");
    snprintf(out->root, sizeof out->root, "%s", fields[3]);
    snprintf(out->device, sizeof out->device, "%s", device);
    snprintf(out->fs_type, sizeof out->fs_type, "%s", type);
}

static void
close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

struct error *
mount_find(const char *path, struct mount_point *out)
{
    out->exists = false;
    char real[PATH_MAX];
    if (!realpath(path, real)) {
        if (errno == ENOENT)
            return NULL;
        /*
         * A mount whose file system is gone cannot be resolved, but stands in the table as it was
         * made.
         */
        snprintf(real, sizeof real, "%s", path);
    }
    FILE *table AUTO(close_file) = fopen("/proc/self/mountinfo", "re");
    if (!table)
        return error_from_errno(errno, "read the table of mounts");
    char *line AUTO(memory_cleanup) = NULL;
    size_t room = 0;
    /* The last line for a path is the mount on top. */
    while (getline(&line, &room, table) > 0)
        read_line(line, real, out);
    return NULL;
}

static bool
is_device(const char *path, dev_t number)
{
    struct stat found;
    return lstat(path, &found) == 0 && S_ISBLK(found.st_mode) && found.st_rdev == number;
}

/* "98:0" */
static bool
is_file_system(const char *text, dev_t number)
{
    unsigned major, minor;
    /* The kernel's own text. NOLINTNEXTLINE(cert-err34-c) */
    return sscanf(text, "%u:%u", &major, &minor) == 2 && makedev(major, minor) == number;
}

/*
 * A line that tells of the device's own file, whatever else is mounted upon it; or of a file in
 * another /dev, as of a container before this one, which can only be looked at.
 */
static bool
shows_device(char *const fields[FIELDS], const char *device, const struct stat *wanted)
{
    const char *name = strrchr(device, '/');
    const char *found = strstr(fields[3], name);
    if (!found)
        return false;
    return (strcmp(found, name) == 0 && is_file_system(fields[2], wanted->st_dev)) ||
           is_device(fields[4], wanted->st_rdev);
}

struct error *
mount_find_device(const char *device, bool *is_bound)
{
    struct stat wanted;
    *is_bound = false;
    if (stat(device, &wanted) != 0)
        return error_from_errno(errno, "look at %s", device);
    FILE *table AUTO(close_file) = fopen("/proc/self/mountinfo", "re");
    if (!table)
        return error_from_errno(errno, "read the table of mounts");
    char *line AUTO(memory_cleanup) = NULL;
    size_t room = 0;
    while (!*is_bound && getline(&line, &room, table) > 0) {
        char *save = NULL;
        char *fields[FIELDS];
        *is_bound = split_line(line, fields, &save) && shows_device(fields, device, &wanted);
    }
    return NULL;
}

/* Asks the kernel about the one path: the table is long where there are many volumes. */
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

/* Flags that belong to a mount point and not to the file system. */
#define POINT_FLAGS                                                                                \
    (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME | MS_RELATIME |     \
     MS_STRICTATIME)

bool
mount_is_point_option(const char *option)
{
    unsigned long flags = 0;
    return apply_option(option, &flags) && !(flags & ~(unsigned long)POINT_FLAGS);
}

/* A value may be a secret: errors tell the name alone. */
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

/* A change of flags replaces them all: these are in force now. */
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
 * Whether the kernel knows it; on older ones a file system reads its flags only when it is mounted,
 * and none is found bad.
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

/* Of the flags that are the file system's own, the bad one; or all, where it cannot be found. */
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
 * A snapshot that syncs the file system holds it open for a moment: that is waited for. Who else
 * uses it may do so for ever.
 */
struct error *
mount_remove(const char *path)
{
    for (unsigned tries = 0;;) {
        if (umount2(path, UMOUNT_NOFOLLOW) == 0)
            continue;
        if (errno == EINVAL || errno == ENOENT)
            return NULL; /* nothing is mounted there, or nothing is there */
        if (errno != EBUSY || ++tries == BUSY_TRIES)
            return error_from_errno(errno, "unmount %s", path);
        nanosleep(&(struct timespec){.tv_nsec = BUSY_PAUSE_NS}, NULL);
    }
}
