/* SPDX-License-Identifier: Apache-2.0 */
/* Exported snapshots, as an extended attribute of the volume's holder: see btrfs_exported.h. */
#include "backends/btrfs_exported.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"

#define ATTRIBUTE "user.skycap.exported"

/* The directory that only skycap has access to. */
static struct error *
open_holder(int tree, int *out)
{
    *out = files_open_directory(tree, "..");
    return *out < 0 ? error_from_errno(errno, "open the directory of a volume") : NULL;
}

static struct error *
read_from(int holder, struct btrfs_exported *out)
{
    ssize_t size = fgetxattr(holder, ATTRIBUTE, out->snapshots, sizeof out->snapshots);
    out->count = 0;
    if (size < 0 && errno != ENODATA && errno != ERANGE)
        return error_from_errno(errno, "read which snapshots were exported");
    if (size > 0)
        out->count = (size_t)size / sizeof out->snapshots[0];
    return NULL;
}

struct error *
btrfs_exported_read(int tree, struct btrfs_exported *out)
{
    int holder AUTO(files_close) = -1;
    struct error *error = open_holder(tree, &holder);
    return error ? error : read_from(holder, out);
}

bool
btrfs_exported_has(const struct btrfs_exported *exported, const uint8_t snapshot[16])
{
    for (size_t i = 0; i < exported->count; i++)
        if (!memcmp(exported->snapshots[i], snapshot, sizeof exported->snapshots[i]))
            return true;
    return false;
}

struct error *
btrfs_exported_add(int tree, const uint8_t snapshot[16])
{
    struct btrfs_exported exported;
    size_t each = sizeof exported.snapshots[0];
    int holder AUTO(files_close) = -1;
    struct error *error = open_holder(tree, &holder);
    /* Another export of the volume may end at the same time. */
    if (!error && flock(holder, LOCK_EX) != 0)
        error = error_from_errno(errno, "lock the directory of a volume");
    if (!error)
        error = read_from(holder, &exported);
    if (error || btrfs_exported_has(&exported, snapshot))
        return error;
    if (exported.count == BTRFS_EXPORTED_MOST)
        memmove(exported.snapshots[0], exported.snapshots[1], --exported.count * each);
    memcpy(exported.snapshots[exported.count++], snapshot, each);
    if (fsetxattr(holder, ATTRIBUTE, exported.snapshots, exported.count * each, 0) != 0 ||
        fsync(holder) != 0)
        return error_from_errno(errno, "write which snapshots were exported");
    return NULL;
}
