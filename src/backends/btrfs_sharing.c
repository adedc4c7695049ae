/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volumes still share data: see btrfs_sharing.h.
 *
 * A subvolume records the UUID of the one it was made from, and keeps it after it was deleted until
 * the kernel has freed all of it. A clone of a snapshot records only the snapshot; so the UUID of
 * the snapshot's volume is recorded on the clone's holder.
 */
#include "backends/btrfs_sharing.h"

#include <btrfsutil.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "backends/btrfs.h"
#include "backends/btrfs_items.h"
#include "backends/layout.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"

#define ORIGIN_ATTRIBUTE "user.skycap.origin"
#define LOOKS_AFTER_A_CHANGE 60u /* two minutes */
#define LOOKS_UNTIL_ALL 30u      /* one minute */
#define TIMES_AS_LONG 100

struct uuid {
    uint8_t bytes[BTRFS_UUID_SIZE];
};

/* The UUIDs of all sources of others, and the volumes that may write more than their size. */
struct look {
    struct btrfs_backend *btrfs;
    size_t sharings; /* before the scan */
    struct uuid *origins;
    size_t origin_count, origin_room;
    struct data *volumes;
    size_t volume_count, volume_room;
};

static void
clear_look(struct look *look)
{
    free(look->origins);
    free(look->volumes);
}

static void
add_origin(struct look *look, const struct uuid *uuid)
{
    if (look->origin_count == look->origin_room) {
        look->origin_room = look->origin_room ? 2 * look->origin_room : 64;
        look->origins = memory_resize(look->origins, look->origin_room * sizeof *look->origins);
    }
    look->origins[look->origin_count++] = *uuid;
}

static int
compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct uuid));
}

static void
take_root(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    static const struct uuid none = {0};
    struct uuid parent;
    size_t place = offsetof(struct btrfs_root_item, parent_uuid);
    if (header->type != BTRFS_ROOT_ITEM_KEY || header->len < place + sizeof parent)
        return;
    memcpy(&parent, (const char *)item + place, sizeof parent);
    if (compare(&parent, &none) != 0)
        add_origin(context, &parent);
}

static struct error *
take_volume(void *context, const struct backend_entry *entry)
{
    struct look *look = context;
    struct uuid origin;
    int holder AUTO(files_close) = -1;
    if (entry->data.kind != KIND_TREE || entry->data.role != ROLE_VOLUME)
        return NULL;
    struct error *error = layout_open_holder(look->btrfs->base.root, &entry->data, &holder);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (fgetxattr(holder, ORIGIN_ATTRIBUTE, &origin, sizeof origin) == sizeof origin)
        add_origin(look, &origin);
    if (!btrfs_quota_has_allowance(holder))
        return NULL;
    if (look->volume_count == look->volume_room) {
        look->volume_room = look->volume_room ? 2 * look->volume_room : 16;
        look->volumes = memory_resize(look->volumes, look->volume_room * sizeof *look->volumes);
    }
    look->volumes[look->volume_count++] = entry->data;
    return NULL;
}

/* Ignores a volume that has been deleted meanwhile. */
static struct error *
review(struct look *look, const struct data *data)
{
    struct btrfs_util_subvolume_info info;
    int holder AUTO(files_close) = -1;
    int tree AUTO(files_close) = -1;
    struct error *error = layout_open_content(look->btrfs->base.root, data, &tree);
    if (!error)
        error = layout_open_holder(look->btrfs->base.root, data, &holder);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (btrfs_util_subvolume_info_fd(tree, 0, &info) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "look at a subvolume");
    bool is_shared = look->origin_count && bsearch(info.uuid, look->origins, look->origin_count,
                                                   sizeof *look->origins, compare);
    struct btrfs_sharing_state state = {is_shared, look->sharings};
    return btrfs_quota_review(&look->btrfs->quota, holder, tree, state);
}

static struct error *
look_at_all(struct btrfs_backend *btrfs)
{
    struct look look AUTO(clear_look) = {.btrfs = btrfs,
                                         .sharings = btrfs_quota_count_sharings(&btrfs->quota)};
    struct btrfs_range roots = {.tree = BTRFS_ROOT_TREE_OBJECTID,
                                .min = {BTRFS_FIRST_FREE_OBJECTID, BTRFS_ROOT_ITEM_KEY, 0},
                                .max = {BTRFS_LAST_FREE_OBJECTID, BTRFS_ROOT_ITEM_KEY, UINT64_MAX}};
    struct error *error = layout_list(&btrfs->base, take_volume, &look);
    if (!error && look.volume_count)
        error = btrfs_items_each(btrfs->base.root, roots, take_root, &look);
    if (look.origin_count)
        qsort(look.origins, look.origin_count, sizeof *look.origins, compare);
    for (size_t i = 0; i < look.volume_count && !error; i++)
        error = review(&look, &look.volumes[i]);
    return error;
}

static bool
is_due(struct btrfs_backend *btrfs)
{
    struct btrfs_sharing *sharing = &btrfs->sharing;
    size_t changes = atomic_load(&btrfs->removed) + btrfs_quota_count_sharings(&btrfs->quota);
    if (changes != sharing->changes)
        sharing->looks_due = LOOKS_AFTER_A_CHANGE;
    sharing->changes = changes;
    if (sharing->looks_due)
        sharing->looks_due--;
    bool is_turn = sharing->looks++ % LOOKS_UNTIL_ALL == 0 || sharing->looks_due;
    return is_turn && (int64_t)clock_now_ns() >= sharing->not_before_ns;
}

struct error *
btrfs_sharing_look(struct btrfs_backend *btrfs)
{
    if (btrfs->quota.kind != BTRFS_QUOTA_SIMPLE || !is_due(btrfs))
        return NULL;
    int64_t begin = (int64_t)clock_now_ns();
    struct error *error = look_at_all(btrfs);
    int64_t end = (int64_t)clock_now_ns();
    btrfs->sharing.not_before_ns = end + TIMES_AS_LONG * (end - begin);
    return error_wrap(error, "look for volumes that share data");
}

struct error *
btrfs_sharing_note_origin(int holder, int snapshot)
{
    struct btrfs_util_subvolume_info info;
    if (btrfs_util_subvolume_info_fd(snapshot, 0, &info) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "look at a snapshot");
    if (fsetxattr(holder, ORIGIN_ATTRIBUTE, info.parent_uuid, sizeof info.parent_uuid, 0) != 0)
        return error_from_errno(errno, "write down where a clone comes from");
    return NULL;
}
