/* SPDX-License-Identifier: Apache-2.0 */
/* I/O limits in the cgroup of a pod: see cgroup.h. */
#include "node/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"
#include "volumes/io_limits.h"

#define MAX_UID 64
/* kubepods/besteffort/podUID, and one more level that a runtime may add. */
#define MAX_DEPTH 4

/* In the order of io_limits_keys. */
static const char *const v2_names[IO_LIMITS_COUNT] = {"rbps", "wbps", "riops", "wiops"};
static const char *const v1_files[IO_LIMITS_COUNT] = {
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
};

/* ---- the pod's control group ---- */

/* The uid in .../pods/UID/...; false if there is none. */
static bool
find_uid(const char *path, char uid[MAX_UID])
{
    static const char before[] = "/pods/";
    const char *at = strstr(path, before);
    if (!at)
        return false;
    at += sizeof before - 1;
    size_t size = strspn(at, "0123456789abcdefABCDEF-");
    if (size == 0 || size >= MAX_UID || at[size] != '/')
        return false;
    memcpy(uid, at, size);
    uid[size] = '\0';
    return true;
}

/*
 * podUID, or with systemd kubepods-burstable-podUID.slice, where underscores replace the dashes of
 * the uid.
 */
static bool
is_pod(const char *name, const char *uid)
{
    const char *at = strstr(name, "pod");
    while (at && strncmp(at, "pods", 4) == 0)
        at = strstr(at + 4, "pod");
    if (!at)
        return false;
    at += 3;
    for (; *uid; uid++, at++)
        if (*at != *uid && !(*uid == '-' && *at == '_'))
            return false;
    return *at == '\0' || strcmp(at, ".slice") == 0;
}

static bool
find_below(int directory, const char *uid, int depth, int *out)
{
    int again = dup(directory);
    DIR *listing = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;
    bool found = false;
    if (!listing) {
        files_close(&again);
        return false;
    }
    while (!found && (entry = readdir(listing))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        int below AUTO(files_close) = files_open_directory(directory, entry->d_name);
        if (below < 0)
            continue;
        found = is_pod(entry->d_name, uid);
        if (found)
            *out = dup(below);
        else if (depth > 1 && (depth < MAX_DEPTH || strncmp(entry->d_name, "kube", 4) == 0))
            found = find_below(below, uid, depth - 1, out);
    }
    closedir(listing);
    return found;
}

/* -1 if there is none. */
static int
open_group(const char *root, const char *hierarchy, const char *uid)
{
    char path[PATH_MAX];
    int group = -1;
    snprintf(path, sizeof path, "%s/%s", root, hierarchy);
    int top AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top >= 0)
        find_below(top, uid, MAX_DEPTH, &group);
    return group;
}

/* ---- writing ---- */

static struct error *
write_line(int group, const char *file, const char *line)
{
    int fd AUTO(files_close) = openat(group, file, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line))
        return NULL;
    return error_from_errno(errno, "write \"%s\" to %s of the pod's control group", line, file);
}

static struct error *
write_v2(int group, dev_t device, const int64_t *values)
{
    char line[256];
    int size = snprintf(line, sizeof line, "%u:%u", major(device), minor(device));
    for (size_t i = 0; i < IO_LIMITS_COUNT; i++)
        size += values[i]
                    ? snprintf(line + size, sizeof line - (size_t)size, " %s=%jd", v2_names[i],
                               (intmax_t)values[i])
                    : snprintf(line + size, sizeof line - (size_t)size, " %s=max", v2_names[i]);
    return write_line(group, "io.max", line);
}

/* In version 1, 0 removes a limit. */
static struct error *
write_v1(int group, dev_t device, const int64_t *values)
{
    struct error *error = NULL;
    for (size_t i = 0; i < IO_LIMITS_COUNT && !error; i++) {
        char line[64];
        snprintf(line, sizeof line, "%u:%u %jd", major(device), minor(device), (intmax_t)values[i]);
        error = write_line(group, v1_files[i], line);
    }
    return error;
}

#define MOST_BELOW 8 /* nested cgroups; a container's is one or two levels below its pod's */

/* The cgroup and all below it. Ignores cgroups of containers that have just ended. */
static struct error *
write_v1_tree(int group, dev_t device, const int64_t *values, int depth)
{
    struct error *error = write_v1(group, device, values);
    int again = error || !depth ? -1 : dup(group);
    DIR *listing = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;
    if (!listing)
        files_close(&again);
    while (listing && !error && (entry = readdir(listing))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        int below AUTO(files_close) = files_open_directory(group, entry->d_name);
        if (below >= 0)
            error = write_v1_tree(below, device, values, depth - 1);
        if (error && faccessat(group, entry->d_name, F_OK, 0) != 0) {
            error_free(error);
            error = NULL;
        }
    }
    if (listing)
        closedir(listing);
    return error;
}

bool
cgroup_must_renew_limits(const char *cgroup_root)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/blkio", cgroup_root);
    return access(path, F_OK) == 0;
}

struct error *
cgroup_limit_io(const struct cgroup_device *where, const struct text_map *parameters)
{
    char uid[MAX_UID];
    int64_t values[IO_LIMITS_COUNT];
    struct error *error = NULL;
    for (size_t i = 0; i < IO_LIMITS_COUNT && !error; i++)
        error = io_limits_read(text_map_find(parameters, io_limits_keys[i]), &values[i]);
    if (error)
        return error;
    bool has_uid = find_uid(where->path, uid);
    int v1 AUTO(files_close) = has_uid ? open_group(where->cgroup_root, "blkio", uid) : -1;
    int v2 AUTO(files_close) = has_uid && v1 < 0 ? open_group(where->cgroup_root, "", uid) : -1;
    if (v1 >= 0)
        return write_v1_tree(v1, where->device, values, MOST_BELOW);
    if (v2 >= 0)
        return write_v2(v2, where->device, values);
    if (!io_limits_are_set(parameters))
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "no control group was found for the pod of %s: its I/O is not limited",
                     where->path);
}
