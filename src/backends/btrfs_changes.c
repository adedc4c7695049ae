/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a tree by generation: see btrfs_changes.h.
 *
 * The kernel gives the items of blocks that were written since then; a block holds unchanged items
 * too. The item of an inode says in which generation the inode was changed last: every change of
 * contents, names or metadata changes it.
 */
#include "backends/btrfs_changes.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "backends/btrfs_items.h"
#include "base/memory.h"

#define BTRFS_MAGIC 0x9123683E
#define PATHS_BYTES (64u << 10)

struct finding {
    int directory;
    uint64_t since;
    btrfs_changed *take;
    void *context;
    struct btrfs_data_container *paths;
    struct error *error;
};

struct error *
btrfs_changes_describe(int directory, struct btrfs_origin *out, bool *is_known)
{
    struct statfs status;
    struct stat root;
    struct btrfs_ioctl_get_subvol_info_args subvolume = {0};
    struct btrfs_ioctl_fs_info_args system = {0};
    *is_known = false;
    if (fstatfs(directory, &status) != 0 || fstat(directory, &root) != 0)
        return error_from_errno(errno, "look at a tree");
    if (status.f_type != BTRFS_MAGIC || root.st_ino != BTRFS_FIRST_FREE_OBJECTID)
        return NULL;
    /* The first one gives 1 for some subvolumes, with an answer that is right. */
    if (ioctl(directory, BTRFS_IOC_GET_SUBVOL_INFO, &subvolume) < 0 ||
        ioctl(directory, BTRFS_IOC_FS_INFO, &system) < 0)
        return error_from_errno(errno, "look at a subvolume");
    static const uint8_t none[16];
    *is_known = (subvolume.flags & BTRFS_ROOT_SUBVOL_RDONLY) &&
                memcmp(subvolume.parent_uuid, none, sizeof none) != 0;
    memcpy(out->file_system, system.fsid, sizeof out->file_system);
    memcpy(out->parent, subvolume.parent_uuid, sizeof out->parent);
    out->generation = subvolume.otransid;
    out->taken_s = (int64_t)subvolume.otime.sec;
    return NULL;
}

/* The number of names is limited by the size of the answer; more than that is an error. */
static struct error *
take_paths(struct finding *finding, uint64_t inode, bool is_directory)
{
    struct btrfs_data_container *paths = finding->paths;
    struct btrfs_ioctl_ino_path_args arguments = {
        .inum = inode, .size = PATHS_BYTES, .fspath = (uintptr_t)paths};
    struct error *error = NULL;
    if (inode == BTRFS_FIRST_FREE_OBJECTID)
        return finding->take(finding->context, "", true);
    if (ioctl(finding->directory, BTRFS_IOC_INO_PATHS, &arguments) != 0)
        return errno == ENOENT ? NULL : error_from_errno(errno, "find the paths of an inode");
    if (paths->elem_missed)
        return error_new(CODE_RESOURCE_EXHAUSTED, "a file has too many names");
    for (uint32_t i = 0; i < paths->elem_cnt && !error; i++)
        error = finding->take(finding->context, (const char *)paths->val + (uintptr_t)paths->val[i],
                              is_directory);
    return error;
}

static void
take_item(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    struct finding *finding = context;
    struct btrfs_inode_item inode;
    if (finding->error || header->type != BTRFS_INODE_ITEM_KEY || header->len < sizeof inode)
        return;
    memcpy(&inode, item, sizeof inode);
    if (le64toh(inode.transid) > finding->since && inode.nlink)
        finding->error = take_paths(finding, header->objectid, S_ISDIR(le32toh(inode.mode)));
}

struct error *
btrfs_changes_find(int directory, uint64_t since, btrfs_changed *take, void *context)
{
    struct btrfs_range range = {.min = {BTRFS_FIRST_FREE_OBJECTID, BTRFS_INODE_ITEM_KEY, 0},
                                .max = {BTRFS_LAST_FREE_OBJECTID, BTRFS_INODE_ITEM_KEY, UINT64_MAX},
                                .since = since + 1};
    struct finding finding = {directory, since, take, context, memory_new(PATHS_BYTES), NULL};
    struct error *error = btrfs_items_each(directory, range, take_item, &finding);
    memory_cleanup(&finding.paths);
    if (!error)
        return finding.error;
    error_free(finding.error);
    return error;
}
