/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flushing: see flush.h.
 *
 * A freeze would flush too, but would stop all writers for as long as the sync takes, and would
 * fail if somebody else has frozen the file system, as backup tools do before they request a
 * snapshot. If the back end cannot copy an image at one instant, the copy needs a freeze, and the
 * freeze syncs.
 *
 * The caller need not hold the volume. Rows are only read: a row without a mount may be about to be
 * mounted. If a mount disappears meanwhile, the kernel syncs it.
 */
#include "node/flush.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "node/use.h"

static struct error *
sync_file_system(const char *path)
{
    int fd AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0)
        return error_from_errno(errno, "sync the file system at %s", path);
    return NULL;
}

static struct error *
flush_use(struct backing *backing, const struct use *use)
{
    bool is_mounted;
    struct error *error = use_is_mounted(backing, use, &is_mounted);
    if (error || !is_mounted)
        return error;
    return capability_is_block(use->capability) ? backing_flush(backing)
                                                : sync_file_system(use->path);
}

/* All uses are of one file system or one device, but any of them may be disappearing. */
struct error *
flush_volume(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct mount_list rows = {0};
    if (volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE ||
        !backend_of(engine->backend, volume->handle)->cuts_images)
        return NULL;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    if (!error && rows.count)
        error = backing_find(engine, volume, &backing);
    for (size_t i = 0; i < rows.count && !error; i++) {
        struct use use = use_of_row(rows.records[i]);
        if (!use.read_only)
            error = flush_use(&backing, &use);
    }
    return error;
}
