/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something at a path of this node, whatever it comes from: a directory or a device that is bound there, a file system that is mounted. What is there is
 * asked of the files themselves (device and inode, or the device below a file system), not of the table of mounts.
 */
#ifndef VOLUMES_POINTS_H
#define VOLUMES_POINTS_H

#include <stdbool.h>

#include "volumes/engine.h"

/* How a volume is to be used at a path. */
struct use {
    const char *path;
    const char *staging_path; /* of a publication; "": none */
    const volume_capability *capability;
    bool read_only;
};

/* ---- what is there ---- */

/* `b` is not followed if it is a link. */
bool points_is_same_file(const char *a, const char *b);
bool points_is_read_only(const char *path);

/* A bind of `source`, made with the same right to write. */
bool points_is_bound(const char *source, const char *path, bool read_only);

/* `path` is not followed if it is a link. */
bool points_is_device_at(const char *device, const char *path);
bool points_is_mounted_from(const char *device, const char *path);

/* ---- putting something there ---- */

/* What is mounted where we want to mount goes; FAILED_PRECONDITION if it works and is not known to be our own. */
MUST_CHECK struct error *points_clear(const char *path, bool is_known);

/* FAILED_PRECONDITION: the directory above it is missing, or something else is there, be it a link to one. */
MUST_CHECK struct error *points_make_directory(const char *path);

/* The capability's mount flags one by one, also those that came in one word with commas, as mount(8) takes them; NULL at the end. */
const char *const *points_mount_flags(const volume_capability *capability, struct arena *arena);

/* The files get the group that the capability asks for, unless they are only read. */
MUST_CHECK struct error *points_apply_group(const struct use *use);

/* What is staged appears at the use's own path, which is made. `is_known`: a mount there is our own, and may be replaced. */
MUST_CHECK struct error *points_bind_staged(const struct use *use, bool is_known,
                                            struct arena *arena);

/* The device appears at the path, which is made. */
MUST_CHECK struct error *points_bind_device(const char *device, const char *path, bool is_known);

/* ---- and back ---- */

/* What is at the path goes, and the directory or file that it was mounted on; only if that is empty. */
MUST_CHECK struct error *points_remove_with_path(const char *path);

#endif
