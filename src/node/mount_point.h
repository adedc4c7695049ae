/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mounted at a path of this node: a directory or a device that is bound there, or a file
 * system. Determined from the files themselves (device and inode, or the device below a file
 * system), not from the table of mounts.
 */
#ifndef NODE_MOUNT_POINT_H
#define NODE_MOUNT_POINT_H

#include <stdbool.h>

#include "base/error.h"

/* ---- what is there ---- */

/* `b` is not followed if it is a link. */
bool mount_point_is_same_file(const char *a, const char *b);
bool mount_point_is_read_only(const char *path);

/* Whether it is a bind mount of `source`, read-only as requested. */
bool mount_point_is_bound(const char *source, const char *path, bool read_only);

/* `path` is not followed if it is a link. */
bool mount_point_is_device_at(const char *device, const char *path);
bool mount_point_is_mounted_from(const char *device, const char *path);

/* ---- mounting ---- */

/*
 * Unmounts what is mounted where we want to mount. FAILED_PRECONDITION if it works and is not known
 * to be ours.
 */
MUST_CHECK struct error *mount_point_clear(const char *path, bool is_known);

/*
 * FAILED_PRECONDITION: the parent directory is missing, or something else is there, even a link to
 * a directory.
 */
MUST_CHECK struct error *mount_point_make_directory(const char *path);

/*
 * Binds the device to the path, which it creates. `is_known`: a mount there is ours and may be
 * replaced.
 */
MUST_CHECK struct error *mount_point_bind_device(const char *device, const char *path,
                                                 bool is_known);

/* ---- unmounting ---- */

/* Unmounts the path and removes the directory or file below the mount, if that is empty. */
MUST_CHECK struct error *mount_point_remove(const char *path);

#endif
