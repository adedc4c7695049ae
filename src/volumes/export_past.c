/* SPDX-License-Identifier: Apache-2.0 */
/* The past of a volume's file system: see export_past.h. */
#include "volumes/export_past.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/files.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

static struct error *
open_tree(struct engine *engine, const struct data *data, int *fd)
{
    char path[PATH_MAX];
    struct error *error = backend_path(engine->backend, data, path, sizeof path);
    if (error)
        return error;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd < 0 ? error_from_errno(errno, "open %s", path) : NULL;
}

static struct error *
open_volume(struct engine *engine, const char *handle, int *fd)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct row row;
    struct error *error = rows_get(engine, &volume_rows, handle, &arena, &row);
    if (error)
        return error;
    struct data data = volume_data((const volume_record *)row.record);
    return open_tree(engine, &data, fd);
}

void
export_past_read(struct engine *engine, const snapshot_record *snapshot, struct btrfs_exported *out)
{
    int fd AUTO(files_close) = -1;
    out->count = 0;
    struct error *error AUTO(error_cleanup) = open_volume(engine, snapshot->source_handle, &fd);
    if (!error)
        error = btrfs_exported_read(fd, out);
}

static bool
is_same(const Skycap__Exports__Origin *recorded, const struct btrfs_origin *found)
{
    return recorded->generation == found->generation && recorded->taken_s == found->taken_s &&
           recorded->parent.len == sizeof found->parent &&
           !memcmp(recorded->parent.data, found->parent, sizeof found->parent);
}

static bool
is_here(struct engine *engine, const export_record *record)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    int fd AUTO(files_close) = -1;
    struct btrfs_origin origin;
    bool is_known = false;
    snapshot_record *snapshot;
    struct error *error AUTO(error_cleanup) =
        snapshot_get_any(engine, record->handle, &arena, &snapshot);
    if (error)
        return false;
    struct data data = snapshot_data(snapshot);
    error = open_tree(engine, &data, &fd);
    if (!error)
        error = btrfs_changes_describe(fd, &origin, &is_known);
    return !error && is_known && is_same(record->origin, &origin);
}

bool
export_past_has(struct engine *engine, const struct btrfs_exported *exported,
                const export_record *record)
{
    const ProtobufCBinaryData *snapshot = &record->origin->snapshot;
    return (snapshot->len == sizeof exported->snapshots[0] &&
            btrfs_exported_has(exported, snapshot->data)) ||
           is_here(engine, record);
}

void
export_past_note(struct engine *engine, const snapshot_record *snapshot,
                 const struct btrfs_origin *origin)
{
    int fd AUTO(files_close) = -1;
    struct error *error AUTO(error_cleanup) = open_volume(engine, snapshot->source_handle, &fd);
    if (!error)
        error = btrfs_exported_add(fd, origin->snapshot);
    if (error)
        log_info(engine->log, "the next export of a volume may have to read everything",
                 LOG_TEXT("volume", snapshot->source_handle), LOG_TEXT("error", error->message));
}
