/* SPDX-License-Identifier: Apache-2.0 */
/* Quota groups of volumes with subvolumes in them: see btrfs_family.h. */
#include "backends/btrfs_family.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "backends/btrfs_account.h"
#include "backends/btrfs_items.h"
#include "backends/btrfs_quota.h"
#include "base/memory.h"

#define LEVEL_SHIFT 48

uint64_t
btrfs_family_of(uint64_t volume_id)
{
    return (uint64_t)BTRFS_FAMILY_LEVEL << LEVEL_SHIFT | volume_id;
}

static bool
is_family(uint64_t group)
{
    return group >> LEVEL_SHIFT == BTRFS_FAMILY_LEVEL;
}

static uint64_t
volume_of(uint64_t group)
{
    return group & ((UINT64_C(1) << LEVEL_SHIFT) - 1);
}

/* ---- what the kernel can do; 0 or the value of errno ---- */

static int
make_group(int root, uint64_t group, bool is_wanted)
{
    struct btrfs_ioctl_qgroup_create_args arguments = {.create = is_wanted, .qgroupid = group};
    return ioctl(root, BTRFS_IOC_QGROUP_CREATE, &arguments) == 0 ? 0 : errno;
}

static int
assign(int root, uint64_t id, uint64_t group, bool is_wanted)
{
    struct btrfs_ioctl_qgroup_assign_args arguments = {
        .assign = is_wanted, .src = id, .dst = group};
    return ioctl(root, BTRFS_IOC_QGROUP_ASSIGN, &arguments) < 0 ? errno : 0;
}

static int
limit(int root, uint64_t group, uint64_t limit_bytes)
{
    struct btrfs_ioctl_qgroup_limit_args arguments = {
        .qgroupid = group, .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = limit_bytes}};
    return ioctl(root, BTRFS_IOC_QGROUP_LIMIT, &arguments) == 0 ? 0 : errno;
}

/* The subvolume or the group no longer exists. */
static bool
is_gone(int failed)
{
    return failed == ENOENT || failed == EINVAL;
}

/* ---- who belongs to whom ---- */

/*
 * Relations are in the quota tree in both directions: those of a subvolume lead to groups, which
 * have higher numbers; those of a group lead to its members.
 */
static void
take_group(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    (void)item;
    if (header->type == BTRFS_QGROUP_RELATION_KEY && is_family(header->offset))
        btrfs_ids_add(context, header->offset);
}

static void
take_member(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    (void)item;
    if (header->type == BTRFS_QGROUP_RELATION_KEY && header->offset < header->objectid)
        btrfs_ids_add(context, header->offset);
}

static struct error *
list_families(int root, uint64_t id, struct btrfs_ids *out)
{
    struct btrfs_range range = {.tree = BTRFS_QUOTA_TREE_OBJECTID,
                                .min = {id, BTRFS_QGROUP_RELATION_KEY, btrfs_family_of(0)},
                                .max = {id, BTRFS_QGROUP_RELATION_KEY, UINT64_MAX}};
    return btrfs_items_each(root, range, take_group, out);
}

static struct error *
list_members(int root, uint64_t group, struct btrfs_ids *out)
{
    struct btrfs_range range = {.tree = BTRFS_QUOTA_TREE_OBJECTID,
                                .min = {group, BTRFS_QGROUP_RELATION_KEY, 0},
                                .max = {group, BTRFS_QGROUP_RELATION_KEY, group}};
    return btrfs_items_each(root, range, take_member, out);
}

/* Leaves all families except this one (0: all), and tells whether it is a member of this one. */
static struct error *
leave_others(int root, uint64_t id, uint64_t group, bool *is_member)
{
    struct btrfs_ids groups AUTO(btrfs_ids_clear) = {0};
    struct error *error = list_families(root, id, &groups);
    *is_member = false;
    for (size_t i = 0; i < groups.count && !error; i++) {
        bool stays = groups.ids[i] == group;
        int failed = stays ? 0 : assign(root, id, groups.ids[i], false);
        *is_member |= stays;
        if (failed && !is_gone(failed))
            error = error_from_errno(failed, "take a subvolume out of a quota group");
    }
    return error;
}

struct error *
btrfs_family_join(int root, uint64_t volume_id, uint64_t id)
{
    bool is_member;
    struct error *error = leave_others(root, id, btrfs_family_of(volume_id), &is_member);
    if (error || is_member)
        return error;
    int failed = assign(root, id, btrfs_family_of(volume_id), true);
    if (failed && failed != EEXIST && !is_gone(failed))
        return error_from_errno(failed, "put a subvolume into a quota group");
    return NULL;
}

/* ---- life ---- */

struct error *
btrfs_family_limit(int root, uint64_t volume_id, uint64_t limit_bytes)
{
    int failed = limit(root, btrfs_family_of(volume_id), limit_bytes);
    if (failed && failed != ENOENT)
        return error_from_errno(failed, "limit a quota group");
    return NULL;
}

static uint64_t
read_limit(int holder)
{
    struct btrfs_account account = btrfs_account_read(holder);
    return btrfs_account_limit(&account);
}

/*
 * A concurrent change of the size first records the new size, then sets the limit of the group if
 * it exists.
 */
static struct error *
limit_as_written(int root, uint64_t volume_id, int holder)
{
    uint64_t limit_bytes;
    struct error *error;
    do {
        limit_bytes = read_limit(holder);
        error = btrfs_family_limit(root, volume_id, limit_bytes);
    } while (!error && limit_bytes != read_limit(holder));
    return error;
}

/* The volume joins last: once it is a member, everything else is done. */
struct error *
btrfs_family_make(int root, uint64_t volume_id, int holder, bool *is_new)
{
    bool is_member;
    uint64_t group = btrfs_family_of(volume_id);
    struct error *error = leave_others(root, volume_id, group, &is_member);
    *is_new = !error && !is_member;
    if (!*is_new)
        return error;
    int failed = make_group(root, group, true);
    if (failed && failed != EEXIST)
        return error_from_errno(failed, "make a quota group");
    error = limit_as_written(root, volume_id, holder);
    return error ? error : btrfs_family_join(root, volume_id, volume_id);
}

struct error *
btrfs_family_release(int root, uint64_t id)
{
    bool ignored;
    int failed = limit(root, id, UINT64_MAX);
    if (failed && failed != ENOENT)
        return error_from_errno(failed, "lift the limit of a subvolume");
    return leave_others(root, id, 0, &ignored);
}

struct error *
btrfs_family_drop(int root, uint64_t volume_id)
{
    struct btrfs_ids members AUTO(btrfs_ids_clear) = {0};
    uint64_t group = btrfs_family_of(volume_id);
    struct error *error = list_members(root, group, &members);
    if (error)
        return error;
    /* The account of a deleted subvolume stays as long as others share its data. */
    for (size_t i = 0; i < members.count; i++)
        assign(root, members.ids[i], group, false);
    int failed = make_group(root, group, false);
    if (failed && failed != ENOENT)
        return error_from_errno(failed, "remove a quota group");
    return NULL;
}

static void
take_family(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    (void)item;
    if (header->type == BTRFS_QGROUP_INFO_KEY && is_family(header->offset))
        btrfs_ids_add(context, volume_of(header->offset));
}

struct error *
btrfs_family_drop_stale(int root)
{
    struct btrfs_ids volumes AUTO(btrfs_ids_clear) = {0};
    struct btrfs_range range = {
        .tree = BTRFS_QUOTA_TREE_OBJECTID,
        .min = {0, BTRFS_QGROUP_INFO_KEY, btrfs_family_of(0)},
        .max = {0, BTRFS_QGROUP_INFO_KEY, btrfs_family_of(volume_of(UINT64_MAX))}};
    struct error *error = btrfs_items_each(root, range, take_family, &volumes);
    for (size_t i = 0; i < volumes.count && !error; i++) {
        struct btrfs_link link;
        error = btrfs_roots_find(root, volumes.ids[i], &link);
        if (!error && !link.id)
            error = btrfs_family_drop(root, volumes.ids[i]);
    }
    return error;
}
