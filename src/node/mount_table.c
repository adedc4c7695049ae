/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of mounts, /proc/self/mountinfo: see mount.h.
 *
 * libmount could parse it, but has no static library and needs two more libraries; one loop of
 * strtok_r is enough.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/memory.h"
#include "node/mount.h"

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

#define FIELDS 6 /* in every line */

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
         * A mount whose file system is gone cannot be resolved, but is in the table with its
         * original path.
         */
        snprintf(real, sizeof real, "%s", path);
    }
    FILE *table AUTO(close_file) = fopen("/proc/self/mountinfo", "re");
    if (!table)
        return error_from_errno(errno, "read the table of mounts");
    char *line AUTO(memory_cleanup) = NULL;
    size_t room = 0;
    /* The last line for a path is the topmost mount. */
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
 * A line about the device's own file, whatever is mounted on it, or about a file in another /dev,
 * as of an earlier container, which can only be compared by its name.
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
