/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging (NodeStageVolume): a volume is mounted once on this node, and published from there at any
 * number of paths (publish.h). Every function is idempotent, and repairs what a crash or a reboot
 * has undone. A request waits for a while for others that work on the same volume, then gets
 * ABORTED.
 */
#ifndef NODE_STAGE_H
#define NODE_STAGE_H

#include "node/use.h"
#include "volumes/held.h"

#define STAGE_WAIT_MS 10000

/*
 * ALREADY_EXISTS: staged there in another way. FAILED_PRECONDITION: the volume is of another kind.
 */
MUST_CHECK struct error *stage_volume(struct engine *engine, const char *handle,
                                      const struct use *use);

/*
 * FAILED_PRECONDITION while it is published from there. Success if it is not staged or does not
 * exist.
 */
MUST_CHECK struct error *stage_undo(struct engine *engine, const char *handle, const char *path);

/* FAILED_PRECONDITION: one of the uses is published from there. */
MUST_CHECK struct error *stage_check_unpublished(const struct mount_list *uses,
                                                 const char *staging_path);

/*
 * Mounts the volume at the path: binds a tree, or mounts the file system of an image. Formats an
 * image that has no file system, and grows a file system that is smaller than its image. A block
 * volume only gets its device. `is_known`: a mount at the path is ours and may be replaced.
 */
MUST_CHECK struct error *stage_mount(struct engine *engine, struct held_volume *held,
                                     const struct use *use, bool is_known, struct arena *arena);

#endif
