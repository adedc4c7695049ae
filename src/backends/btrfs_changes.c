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
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "backends/btrfs_items.h"
#include "base/memory.h"

#define BTRFS_MAGIC 0x9123683E
#define PATHS_BYTES 4096u

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
    memcpy(out->snapshot, subvolume.uuid, sizeof out->snapshot);
    out->generation = subvolume.otransid;
    out->taken_s = (int64_t)subvolume.otime.sec;
    return NULL;
}

/* ---- a file with many names ---- */

/* The names of one inode, found by the items that refer to it. */
struct naming {
    struct finding *finding;
    bool is_directory;
    struct btrfs_ioctl_ino_lookup_args parent; /* its number, and its path with a slash behind */
    struct error *error;
};

static struct error *
find_parent(struct naming *naming, uint64_t parent)
{
    if (naming->parent.objectid == parent)
        return NULL;
    naming->parent = (struct btrfs_ioctl_ino_lookup_args){.objectid = parent};
    if (ioctl(naming->finding->directory, BTRFS_IOC_INO_LOOKUP, &naming->parent) == 0)
        return NULL;
    return errno == ENAMETOOLONG
               ? error_new(CODE_OUT_OF_RANGE, "a path is too long for the kernel to tell it")
               : error_from_errno(errno, "find the path of a directory");
}

static void
take_name(struct naming *naming, uint64_t parent, const char *name, size_t size)
{
    struct finding *finding = naming->finding;
    char path[sizeof naming->parent.name + NAME_MAX + 1];
    if (!naming->error)
        naming->error = find_parent(naming, parent);
    if (naming->error || size > NAME_MAX)
        return;
    snprintf(path, sizeof path, "%.*s%.*s", (int)sizeof naming->parent.name - 1,
             naming->parent.name, (int)size, name);
    naming->error = finding->take(finding->context, path, naming->is_directory);
}

/* An item has several names, one after the other. */
static void
take_names(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    struct naming *naming = context;
    const char *at = item, *end = at + header->len;
    struct btrfs_inode_ref near;
    struct btrfs_inode_extref far;
    bool is_far = header->type == BTRFS_INODE_EXTREF_KEY;
    size_t head = is_far ? sizeof far : sizeof near;
    while ((size_t)(end - at) > head) {
        memcpy(is_far ? (void *)&far : &near, at, head);
        size_t size = le16toh(is_far ? far.name_len : near.name_len);
        uint64_t parent = is_far ? le64toh(far.parent_objectid) : header->offset;
        if (size > (size_t)(end - at) - head)
            return;
        take_name(naming, parent, at + head, size);
        at += head + size;
    }
}

static struct error *
take_many_paths(struct finding *finding, uint64_t inode, bool is_directory)
{
    struct btrfs_range range = {.min = {inode, BTRFS_INODE_REF_KEY, 0},
                                .max = {inode, BTRFS_INODE_EXTREF_KEY, UINT64_MAX}};
    struct naming naming = {.finding = finding, .is_directory = is_directory};
    struct error *error = btrfs_items_each(finding->directory, range, take_names, &naming);
    if (!error)
        return naming.error;
    error_free(naming.error);
    return error;
}

/* ---- all ---- */

/* The kernel gives 4096 bytes of paths, whatever it is asked for. */
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
        return take_many_paths(finding, inode, is_directory);
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
