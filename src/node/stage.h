/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging (NodeStageVolume): a volume is mounted once on this node, and published from there at any
 * number of paths (publish.h). Every function does nothing where it is done already, and makes good
 * what a crash or a reboot has taken away. A request waits a while for others that work on the same
 * volume, then gets ABORTED.
 */
#ifndef NODE_STAGE_H
#define NODE_STAGE_H

#include "node/use.h"
#include "volumes/held.h"

#define STAGE_WAIT_MS 10000

/*
 * ALREADY_EXISTS: staged there in another way. FAILED_PRECONDITION: the volume is not of that kind.
 */
MUST_CHECK struct error *stage_volume(struct engine *engine, const char *handle,
                                      const struct use *use);

/*
 * FAILED_PRECONDITION while it is published from there. Not staged, or no such volume, is success.
 */
MUST_CHECK struct error *stage_undo(struct engine *engine, const char *handle, const char *path);

/* FAILED_PRECONDITION: one of the uses is published from there. */
MUST_CHECK struct error *stage_check_unpublished(const struct mount_list *uses,
                                                 const char *staging_path);

/*
 * Mounts the volume itself at the path: binds a tree, or mounts the file system of an image. An
 * image that has no file system yet is formatted; a file system that is smaller than its image
 * grows. A block volume gets its device, and nothing is mounted. `is_known`: a mount at the path is
 * our own, and may be replaced.
 */
MUST_CHECK struct error *stage_mount(struct engine *engine, struct held_volume *held,
                                     const struct use *use, bool is_known, struct arena *arena);

#endif
