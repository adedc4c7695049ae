/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of a volume at a path of this node, by staging or publishing: what was asked for, the row
 * that records it (mount_rows.h), and whether it is mounted. Callers hold the volume unless a
 * function says otherwise.
 */
#ifndef NODE_USE_H
#define NODE_USE_H

#include "node/backing.h"
#include "volumes/capability.h"
#include "volumes/mount_rows.h"

struct use {
    const char *path;
    const char *staging_path; /* of a publication; "": none */
    const volume_capability *capability;
    bool read_only;
};

/* A use as its row has it. */
struct use use_of_row(const mount_record *record);

/* FAILED_PRECONDITION says why the volume cannot be used so. The volume need not be held. */
MUST_CHECK struct error *use_check_capability(const volume_record *volume,
                                              const volume_capability *capability);

/* ---- rows ---- */

/* ALREADY_EXISTS: one of the uses is at the same path, and differs. */
MUST_CHECK struct error *use_check_same(const struct mount_list *uses, const struct use *use);

/*
 * FAILED_PRECONDITION: the volume is a file system at one path and would be a block device at the
 * other.
 */
MUST_CHECK struct error *use_check_access_type(const struct mount_list *uses,
                                               const struct use *use);

/*
 * Whether the row conflicts with the use: it is at the same path and differs, or is a file system
 * where the other is a block device. After a reboot it may be a row of what is gone, and is deleted
 * then.
 */
bool use_conflicts(const mount_record *record, const struct use *use);

/*
 * The row for a use: one of `rows`, or written. ALREADY_EXISTS: there is one at the path that
 * differs.
 */
MUST_CHECK struct error *use_record(struct engine *engine, const char *handle,
                                    const struct mount_list *rows, const struct use *use,
                                    struct arena *arena, mount_record **out, bool *is_new);

/* ---- mounts ---- */

/*
 * Whether the use is in force: a staged block volume has its device, everything else is mounted at
 * its path.
 */
MUST_CHECK struct error *use_is_mounted(struct backing *backing, const struct use *use,
                                        bool *is_mounted);

typedef bool use_selects(const mount_record *record, const struct use *wanted);

/*
 * Deletes the rows whose mounts are gone, as after a reboot, and takes them from the list. Looks
 * only at those that `selects` chooses; NULL chooses all.
 */
MUST_CHECK struct error *use_drop_unmounted(struct engine *engine, struct backing *backing,
                                            struct mount_list *rows, use_selects *selects,
                                            const struct use *wanted);

/* All uses that are mounted; rows of others are deleted. */
MUST_CHECK struct error *use_list(struct engine *engine, const volume_record *volume,
                                  struct arena *arena, struct mount_list *out);

/* The files get the group that the capability asks for, unless they are only read. */
MUST_CHECK struct error *use_apply_group(const struct use *use);

#endif
