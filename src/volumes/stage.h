/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes on this node: staged once, published at any number of paths. Every function does nothing where it is done already, and makes good
 * what a crash or a reboot has taken away. A request waits a while for others that work on the same volume, then gets ABORTED.
 */
#ifndef VOLUMES_STAGE_H
#define VOLUMES_STAGE_H

#include "volumes/mount_rows.h"
#include "volumes/place.h"

/* ALREADY_EXISTS: staged there in another way. FAILED_PRECONDITION: the volume is not of that kind. */
MUST_CHECK struct error *stage_volume(struct engine *engine, const char *handle,
                                      const struct use *use);

/* FAILED_PRECONDITION while it is published from there. Not staged, or no such volume, is success. */
MUST_CHECK struct error *stage_undo(struct engine *engine, const char *handle, const char *path);

/* Rows whose mounts are gone, as after a reboot, are deleted; what is left in the list is in use. */
MUST_CHECK struct error *stage_list_uses(struct engine *engine, const volume_record *volume,
                                         struct arena *arena, struct mount_list *out);

/* A use as its row has it. */
struct use stage_use_of(const mount_record *record);

/* ALREADY_EXISTS: one of the uses is at the same path, and differs. */
MUST_CHECK struct error *stage_check_same(const struct mount_list *uses, const struct use *use);

/*
 * Whether the row stands in the way of the use: it is at the same path and differs, or is a file system where the other is a raw device. After a reboot it may be a
 * row of what is gone, and is deleted then.
 */
bool stage_contradicts(const mount_record *record, const struct use *use);

/* FAILED_PRECONDITION: it is a file system at one path and would be a raw device at the other. */
MUST_CHECK struct error *stage_check_access_type(struct engine *engine, const char *handle,
                                                 const struct use *use, struct arena *arena);

/* FAILED_PRECONDITION: one of the uses is published from there. */
MUST_CHECK struct error *stage_check_unpublished(const struct mount_list *uses,
                                                 const char *staging_path);

/* The row for a use: found or written. ALREADY_EXISTS: there is one at the path that differs. */
MUST_CHECK struct error *stage_remember_use(struct engine *engine, const char *handle,
                                            const struct use *use, struct arena *arena,
                                            mount_record **out, bool *is_new);

#define STAGE_WAIT_MS 10000

#endif
