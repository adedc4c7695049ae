/* SPDX-License-Identifier: Apache-2.0 */
/* The file systems that a pool can have: see pool_fs.h. */
#include "backends/pool_fs.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/process.h"

#define LABEL "skycap-pool"
#define TOOL_TIMEOUT_MS 600000

/* ---- btrfs ---- */

static struct error *
make_btrfs(const char *device, const char *uuid)
{
    const char *const with_uuid[] = {"mkfs.btrfs", "--quiet", "--label", LABEL,
                                     "--uuid",     uuid,      device,    NULL};
    const char *const plain[] = {"mkfs.btrfs", "--quiet", "--label", LABEL, device, NULL};
    return process_run(uuid ? with_uuid : plain, TOOL_TIMEOUT_MS, NULL, NULL);
}

static struct error *
grow_btrfs(int root, const char *path)
{
    struct btrfs_ioctl_vol_args *whole AUTO(memory_cleanup) = memory_zeroed(sizeof *whole);
    strcpy(whole->name, "max");
    if (ioctl(root, BTRFS_IOC_RESIZE, whole) != 0)
        return error_from_errno(errno, "resize the btrfs at %s", path);
    return NULL;
}

/* Devices of the device mapper have several paths. */
static bool
is_same_device(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && S_ISBLK(one.st_mode) &&
           one.st_rdev == other.st_rdev;
}

static bool
is_btrfs_on(int root, const char *device)
{
    struct btrfs_ioctl_fs_info_args file_system = {0};
    struct btrfs_ioctl_dev_info_args *info AUTO(memory_cleanup) = memory_zeroed(sizeof *info);
    if (ioctl(root, BTRFS_IOC_FS_INFO, &file_system) != 0)
        return false;
    for (uint64_t id = 1; id <= file_system.max_id; id++) {
        *info = (struct btrfs_ioctl_dev_info_args){.devid = id};
        if (ioctl(root, BTRFS_IOC_DEV_INFO, info) == 0 &&
            is_same_device((const char *)info->path, device))
            return true;
    }
    return false;
}

/* Deleted data goes back to a sparse file's disk, and to a device, but blocks of a file stay. */
const struct pool_fs pool_btrfs = {
    .name = "btrfs",
    .magic = BTRFS_SUPER_MAGIC,
    .smallest_bytes = UINT64_C(256) << 20,
    .options = "discard=async",
    .allocated_options = "nodiscard",
    .make = make_btrfs,
    .grow = grow_btrfs,
    .is_on = is_btrfs_on,
};

/* ---- xfs ---- */

/*
 * The loop device of a file has blocks of 4096 bytes (loop.c), hence the size of the sectors.
 * Nothing is discarded: that would give the blocks of an allocated file back.
 */
static struct error *
make_xfs(const char *device, const char *uuid)
{
    char features[64] = "reflink=1";
    if (uuid)
        snprintf(features, sizeof features, "reflink=1,uuid=%s", uuid);
    const char *const mkfs[] = {"mkfs.xfs",  "-q", "-K",  "-m",   features, "-s",
                                "size=4096", "-L", LABEL, device, NULL};
    return process_run(mkfs, TOOL_TIMEOUT_MS, NULL, NULL);
}

static struct error *
grow_xfs(int root, const char *path)
{
    const char *const grow[] = {"xfs_growfs", "-d", path, NULL};
    (void)root;
    return process_run(grow, TOOL_TIMEOUT_MS, NULL, NULL);
}

static bool
is_xfs_on(int root, const char *device)
{
    struct stat mounted, status;
    return fstat(root, &mounted) == 0 && stat(device, &status) == 0 &&
           mounted.st_dev == status.st_rdev;
}

/* If its log cannot be written because the disk below is full, an xfs stops. */
const struct pool_fs pool_xfs = {
    .name = "xfs",
    .magic = XFS_SUPER_MAGIC,
    .smallest_bytes = UINT64_C(320) << 20,
    .is_allocated = true,
    .options = "prjquota",
    .allocated_options = "prjquota",
    .make = make_xfs,
    .grow = grow_xfs,
    .is_on = is_xfs_on,
};
