/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flushing: see flush.h.
 *
 * A freeze would do it too, but would stop everybody who writes for as long as the sync takes, and would fail where somebody else has frozen the file system, as
 * backup tools do before they ask for a snapshot. Where the back end cannot cut an image the copy needs the freeze, and the freeze syncs.
 *
 * The caller need not hold the volume. Rows are only read: a row without a mount may be one that is about to be mounted. A mount that goes meanwhile is synced by
 * the kernel.
 */
#include "volumes/flush.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backends/files.h"
#include "volumes/place.h"
#include "volumes/stage.h"

static struct error *
sync_file_system(const char *path)
{
    int fd AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0)
        return error_from_errno(errno, "sync the file system at %s", path);
    return NULL;
}

static struct error *
flush_use(struct engine *engine, const volume_record *volume, const struct use *use)
{
    bool is_used;
    struct error *error = place_is_used(engine, volume, use, &is_used);
    if (error || !is_used)
        return error;
    return place_is_block(use->capability) ? place_flush_device(engine, volume)
                                           : sync_file_system(use->path);
}

/* All uses are of one file system, or of one device; but any of them may just be going. */
struct error *
flush_volume(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct mount_list rows = {0};
    if (volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE ||
        !backend_of(engine->backend, volume->handle)->cuts_images)
        return NULL;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    for (size_t i = 0; i < rows.count && !error; i++) {
        struct use use = stage_use_of(rows.records[i]);
        if (!use.read_only)
            error = flush_use(engine, volume, &use);
    }
    return error;
}
