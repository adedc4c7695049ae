/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where and how volumes are staged and published on this node. A row is written before the mount is
 * made and deleted after it is gone. The kernel tells what is really mounted: after a reboot the
 * rows are there and the mounts are not.
 *
 *     mount/VOLUME/HANDLE    a MountRecord
 */
#ifndef VOLUMES_MOUNT_ROWS_H
#define VOLUMES_MOUNT_ROWS_H

#include "volumes/rows.h"

typedef Skycap__Records__MountRecord mount_record;

struct mount_list {
    mount_record **records;
    size_t count;
};

/* Of one volume; NULL: of all. */
MUST_CHECK struct error *mount_rows_list(struct engine *engine, const char *volume_handle,
                                         struct arena *arena, struct mount_list *out);

/* The one at this path; NULL if there is none. */
mount_record *mount_rows_find(const struct mount_list *list, const char *path);

/*
 * The same, or one whose path leads to the same device or directory: the kubelet asks for a block
 * volume by a link to its device.
 */
mount_record *mount_rows_find_same(const struct mount_list *list, const char *path);

/* Sets the record's handle. */
MUST_CHECK struct error *mount_rows_add(struct engine *engine, mount_record *record,
                                        struct arena *arena);
MUST_CHECK struct error *mount_rows_delete(struct engine *engine, const mount_record *record);

/*
 * A staging has no staging path of its own. Neither has the only publication of an ephemeral
 * volume.
 */
bool mount_rows_is_publication(const mount_record *record);

#endif
