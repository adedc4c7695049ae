/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts in this process's namespace: finding, making and removing them. Every function is
 * idempotent.
 */
#ifndef NODE_MOUNT_H
#define NODE_MOUNT_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

struct mount_point {
    bool exists;
    bool read_only;
    char root[PATH_MAX];   /* the mounted part of the file system: "/" or a path in it */
    char device[PATH_MAX]; /* "/dev/loop3", "tmpfs", ... */
    char fs_type[64];
};

/* The topmost mount whose mount point is exactly `path`. */
MUST_CHECK struct error *mount_find(const char *path, struct mount_point *out);

/*
 * Whether the file of a device in /dev, such as "/dev/loop7", is bound to another path, visible or
 * not.
 */
MUST_CHECK struct error *mount_find_device(const char *device, bool *is_bound);

/*
 * Whether something is mounted at exactly this path: false if the path does not exist, true if it
 * cannot be examined.
 */
bool mount_is_point(const char *path);

/*
 * Binds a directory or file to another path. `options` as for mount(8), NULL at the end, or NULL.
 * Only those of a mount point; any other is INVALID_ARGUMENT. Restrictions of the mount at `from`
 * stay. `read_only` overrides the options; so below.
 */
MUST_CHECK struct error *mount_bind(const char *from, const char *to, const char *const *options,
                                    bool read_only);

/* Whether mount_bind accepts it. */
bool mount_is_point_option(const char *option);

/*
 * Mounts the file system on a device. `options` as for mount(8), NULL at the end; unknown ones go
 * to the file system. FAILED_PRECONDITION: it is mounted elsewhere, and only one of the mounts is
 * read-only.
 */
MUST_CHECK struct error *mount_device(const char *device, const char *to, const char *fs_type,
                                      const char *const *options, bool read_only);

/*
 * Unmounts everything that is mounted at the path, one on top of the other. FAILED_PRECONDITION if
 * it is busy.
 */
MUST_CHECK struct error *mount_remove(const char *path);

#endif
