/* SPDX-License-Identifier: Apache-2.0 */
/* Removing volumes and snapshots and their quota accounts: see btrfs.h. */
#include <btrfsutil.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backends/btrfs.h"
#include "backends/btrfs_family.h"
#include "backends/layout.h"
#include "base/files.h"

#define MOST_TRIES 8u
#define FULL_PART 16u /* nearly full: less than this part is free */

/* Users who still have the volume mounted may make more subvolumes while these are deleted. */
static struct error *
delete_with_nested(struct btrfs_backend *btrfs, int holder, const char *name)
{
    uint64_t id = 0;
    int failed = ENOTEMPTY;
    struct error *error = NULL;
    for (unsigned tries = 0; tries < MOST_TRIES && failed == ENOTEMPTY && !error; tries++) {
        error = btrfs_nested_delete(btrfs, holder, name, &id);
        if (!error)
            failed = btrfs_util_delete_subvolume_fd(holder, name, 0) ? errno : 0;
    }
    if (error || failed)
        return error ? error : error_from_errno(failed, "delete a subvolume");
    /* If a scan recreates it meanwhile, a later scan removes it. */
    if (btrfs->quota.kind == BTRFS_QUOTA_SIMPLE)
        error_free(btrfs_family_drop(btrfs->base.root, id));
    return NULL;
}

struct error *
btrfs_delete_subvolume(struct btrfs_backend *btrfs, int holder, const char *name)
{
    uint64_t id = 0;
    struct error *error = NULL;
    if (btrfs->quota.kind == BTRFS_QUOTA_CLASSIC) {
        int subvolume AUTO(files_close) = files_open_directory(holder, name);
        if (subvolume >= 0)
            btrfs_util_subvolume_id_fd(subvolume, &id);
    }
    if (btrfs_util_delete_subvolume_fd(holder, name, 0) != BTRFS_UTIL_OK) {
        if (errno == ENOTEMPTY)
            error = delete_with_nested(btrfs, holder, name);
        else if (errno != ENOENT)
            error = error_from_errno(errno, "delete a subvolume");
    }
    if (id && !error)
        btrfs_quota_remove(&btrfs->quota, btrfs->base.root, id);
    return error;
}

void
btrfs_sweep_accounts(struct btrfs_backend *btrfs)
{
    size_t seen = 0;
    error_free(btrfs_quota_remove_stale(&btrfs->quota, btrfs->base.root, &seen));
    atomic_store(&btrfs->sweep_after, seen > BTRFS_SMALLEST_SWEEP ? seen : BTRFS_SMALLEST_SWEEP);
    atomic_store(&btrfs->removed, 0);
}

static bool
is_nearly_full(const struct btrfs_backend *btrfs)
{
    struct statfs status;
    return fstatfs(btrfs->base.root, &status) == 0 && status.f_bavail < status.f_blocks / FULL_PART;
}

struct error *
btrfs_remove(struct backend *backend, const struct data *data)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    char path[LAYOUT_PATH_SIZE];
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_holder(btrfs->base.root, data, &holder);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    error = btrfs_delete_subvolume(btrfs, holder, layout_content(data));
    if (error)
        return error;
    layout_print_holder(data, path, sizeof path);
    if (unlinkat(btrfs->base.root, path, AT_REMOVEDIR) != 0 && errno != ENOENT)
        return error_from_errno(errno, "remove the directory %s", path);
    if (atomic_fetch_add(&btrfs->removed, 1) == atomic_load(&btrfs->sweep_after))
        btrfs_sweep_accounts(btrfs);
    if (is_nearly_full(btrfs))
        atomic_store(&btrfs->wants_room, true);
    return NULL;
}
