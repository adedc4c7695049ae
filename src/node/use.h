/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of a volume at a path of this node, by staging or publishing: the request, the row that
 * records it (mount_rows.h), and whether it is mounted. Callers hold the volume unless a function
 * says otherwise.
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

/* The use that a row describes. */
struct use use_of_row(const mount_record *record);

/*
 * FAILED_PRECONDITION tells why the volume cannot be used in this way. The volume need not be held.
 */
MUST_CHECK struct error *use_check_capability(const volume_record *volume,
                                              const volume_capability *capability);

/* ---- rows ---- */

/* ALREADY_EXISTS: there is a different use at the same path. */
MUST_CHECK struct error *use_check_same(const struct mount_list *uses, const struct use *use);

/*
 * FAILED_PRECONDITION: the volume is used as a file system at one path and would be a block device
 * at the other.
 */
MUST_CHECK struct error *use_check_access_type(const struct mount_list *uses,
                                               const struct use *use);

/*
 * Whether the row conflicts with the use: it is at the same path and differs, or one is a file
 * system and the other a block device. After a reboot the mount may be gone, and then the row is
 * deleted.
 */
bool use_conflicts(const mount_record *record, const struct use *use);

/*
 * The row of a use: one of `rows`, or a new one. ALREADY_EXISTS: there is a different one at the
 * path.
 */
MUST_CHECK struct error *use_record(struct engine *engine, const char *handle,
                                    const struct mount_list *rows, const struct use *use,
                                    struct arena *arena, mount_record **out, bool *is_new);

/* ---- mounts ---- */

/*
 * Whether the use is in effect: a staged block volume has its device, everything else is mounted at
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

/* All uses that are mounted; deletes the rows of others. */
MUST_CHECK struct error *use_list(struct engine *engine, const volume_record *volume,
                                  struct arena *arena, struct mount_list *out);

/* Gives the files the group that the capability asks for, unless the use is read-only. */
MUST_CHECK struct error *use_apply_group(const struct use *use);

#endif
