/* SPDX-License-Identifier: Apache-2.0 */
/* Removing quota accounts of deleted subvolumes: see btrfs_quota.h. */
#include "backends/btrfs_quota.h"

#include <btrfsutil.h>
#include <endian.h>
#include <linux/btrfs_tree.h>
#include <string.h>
#include <sys/ioctl.h>

#include "backends/btrfs_items.h"
#include "backends/btrfs_roots.h"

struct unused_accounts {
    struct btrfs_ids ids;
    size_t seen;
};

/* A subvolume that exists has at least its root block. */
static void
take_if_unused(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    struct unused_accounts *list = context;
    struct btrfs_qgroup_info_item info;
    if (header->type != BTRFS_QGROUP_INFO_KEY || header->len < sizeof info)
        return;
    memcpy(&info, item, sizeof info);
    list->seen++;
    bool is_subvolume = header->offset >= BTRFS_FIRST_FREE_OBJECTID && header->offset >> 48 == 0;
    if (is_subvolume && !le64toh(info.rfer))
        btrfs_ids_add(&list->ids, header->offset);
}

void
btrfs_quota_remove(const struct btrfs_quota *quota, int root, uint64_t subvolume_id)
{
    struct btrfs_ioctl_qgroup_create_args arguments = {.create = 0, .qgroupid = subvolume_id};
    if (quota->kind != BTRFS_QUOTA_NONE)
        ioctl(root, BTRFS_IOC_QGROUP_CREATE, &arguments);
}

struct error *
btrfs_quota_remove_stale(const struct btrfs_quota *quota, int root, size_t *seen)
{
    struct unused_accounts list = {0};
    struct btrfs_range range = {.tree = BTRFS_QUOTA_TREE_OBJECTID,
                                .min = {0, BTRFS_QGROUP_INFO_KEY, 0},
                                .max = {0, BTRFS_QGROUP_INFO_KEY, UINT64_MAX}};
    *seen = 0;
    if (quota->kind == BTRFS_QUOTA_NONE)
        return NULL;
    struct error *error = btrfs_items_each(root, range, take_if_unused, &list);
    *seen = list.seen;
    for (size_t i = 0; i < list.ids.count && !error; i++) {
        struct btrfs_util_subvolume_info info;
        if (btrfs_util_subvolume_info_fd(root, list.ids.ids[i], &info) ==
            BTRFS_UTIL_ERROR_SUBVOLUME_NOT_FOUND)
            btrfs_quota_remove(quota, root, list.ids.ids[i]);
    }
    btrfs_ids_clear(&list.ids);
    return error_wrap(error, "remove quota accounts that are not used");
}
