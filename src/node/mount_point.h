/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mounted at a path of this node, whatever it comes from: a directory or a device that is
 * bound there, or a file system. The files themselves are asked (device and inode, or the device
 * below a file system), not the table of mounts.
 */
#ifndef NODE_MOUNT_POINT_H
#define NODE_MOUNT_POINT_H

#include <stdbool.h>

#include "base/error.h"

/* ---- what is there ---- */

/* `b` is not followed if it is a link. */
bool mount_point_is_same_file(const char *a, const char *b);
bool mount_point_is_read_only(const char *path);

/* A bind mount of `source`, read-only or not as asked. */
bool mount_point_is_bound(const char *source, const char *path, bool read_only);

/* `path` is not followed if it is a link. */
bool mount_point_is_device_at(const char *device, const char *path);
bool mount_point_is_mounted_from(const char *device, const char *path);

/* ---- mounting ---- */

/*
 * Unmounts what is mounted where we want to mount. FAILED_PRECONDITION if it works and is not known
 * to be our own.
 */
MUST_CHECK struct error *mount_point_clear(const char *path, bool is_known);

/*
 * FAILED_PRECONDITION: the directory above it is missing, or something else is there, be it a link
 * to a directory.
 */
MUST_CHECK struct error *mount_point_make_directory(const char *path);

/*
 * Binds the device to the path, which is made. `is_known`: a mount there is our own, and may be
 * replaced.
 */
MUST_CHECK struct error *mount_point_bind_device(const char *device, const char *path,
                                                 bool is_known);

/* ---- unmounting ---- */

/* Unmounts the path and removes the directory or file that it was mounted on, if that is empty. */
MUST_CHECK struct error *mount_point_remove(const char *path);

#endif
