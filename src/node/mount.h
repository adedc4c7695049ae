/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts of this process's namespace: finding, making and undoing them. Each does nothing where it
 * is done already.
 */
#ifndef NODE_MOUNT_H
#define NODE_MOUNT_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

struct mount_point {
    bool exists;
    bool read_only;
    char root[PATH_MAX];   /* what of the file system is mounted here: "/" or a path in it */
    char device[PATH_MAX]; /* "/dev/loop3", "tmpfs", ... */
    char fs_type[64];
};

/* The topmost mount whose mount point is exactly `path`. */
MUST_CHECK struct error *mount_find(const char *path, struct mount_point *out);

/*
 * Whether the file of a device in /dev, like "/dev/loop7", is bound to another place, to be seen
 * there or not.
 */
MUST_CHECK struct error *mount_find_device(const char *device, bool *is_bound);

/*
 * Whether something is mounted at exactly this path. A path that is not there has nothing; one that
 * cannot be looked at has.
 */
bool mount_is_point(const char *path);

/*
 * A directory or file at another place. `options` as mount(8) has them, NULL at the end, or NULL:
 * those of a mount point only; any other is INVALID_ARGUMENT. What the mount at `from` forbids
 * stays forbidden. `read_only`: whatever the options say; so below.
 */
MUST_CHECK struct error *mount_bind(const char *from, const char *to, const char *const *options,
                                    bool read_only);

/* Whether mount_bind takes it. */
bool mount_is_point_option(const char *option);

/*
 * A file system on a device. `options` as mount(8) has them, NULL at the end; unknown ones go to
 * the file system. FAILED_PRECONDITION: it is mounted elsewhere with another right to write.
 */
MUST_CHECK struct error *mount_device(const char *device, const char *to, const char *fs_type,
                                      const char *const *options, bool read_only);

/* All that is mounted at the path, one upon the other. Busy ones are FAILED_PRECONDITION. */
MUST_CHECK struct error *mount_remove(const char *path);

#endif
