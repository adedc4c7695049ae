/* SPDX-License-Identifier: Apache-2.0 */
/* Making subvolumes: see btrfs_subvolume.h. */
#include "backends/btrfs_subvolume.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <sys/ioctl.h>

int
btrfs_subvolume_make(const struct btrfs_new_subvolume *wanted)
{
    struct btrfs_qgroup_inherit limit = {
        .flags = BTRFS_QGROUP_INHERIT_SET_LIMITS,
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = wanted->limit_bytes}};
    struct btrfs_ioctl_vol_args_v2 arguments = {.fd = wanted->source};
    bool is_empty = wanted->source < 0;
    snprintf(arguments.name, sizeof arguments.name, "%s", wanted->name);
    if (is_empty)
        arguments.fd = 0;
    if (wanted->is_read_only)
        arguments.flags |= BTRFS_SUBVOL_RDONLY;
    if (wanted->is_limited) {
        arguments.flags |= BTRFS_SUBVOL_QGROUP_INHERIT;
        arguments.qgroup_inherit = &limit;
        arguments.size = sizeof limit;
    }
    unsigned long request = is_empty ? BTRFS_IOC_SUBVOL_CREATE_V2 : BTRFS_IOC_SNAP_CREATE_V2;
    return ioctl(wanted->parent, request, &arguments) == 0 ? 0 : errno;
}
