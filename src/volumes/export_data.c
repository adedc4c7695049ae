/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a snapshot goes to the repository: see export.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "exports/image_export.h"
#include "exports/tree_export.h"
#include "volumes/export_internal.h"
#include "volumes/snapshot.h"

/* ---- positions ---- */

static struct error *
save(struct exporting *export, const struct repository_id *manifest, uint64_t count)
{
    export_position position = SKYCAP__RECORDS__EXPORT_POSITION__INIT;
    position.manifest.data = (uint8_t *)manifest->bytes;
    position.manifest.len = sizeof manifest->bytes;
    position.parent = (char *)(export->base.item ? export->base.item->id : "");
    position.count = count;
    return export_position_save(export->engine, export->row, &position);
}

static struct error *
save_tree(void *context, const struct repository_id *manifest)
{
    return save(context, manifest, 0);
}

static struct error *
save_image(void *context, const struct repository_id *manifest, uint64_t chunks)
{
    return save(context, manifest, chunks);
}

/* The manifest to continue with; NULL if there is none with the same base. */
static const struct repository_id *
saved_manifest(const struct exporting *export, struct repository_id *out)
{
    const export_position *position = export->position;
    const char *parent = export->base.item ? export->base.item->id : "";
    if (!position || position->manifest.len != sizeof out->bytes ||
        strcmp(position->parent, parent) != 0)
        return NULL;
    memcpy(out->bytes, position->manifest.data, sizeof out->bytes);
    return out;
}

/* ---- the data ---- */

struct error *
export_data_tree(struct exporting *export)
{
    struct data data = snapshot_data(export->snapshot);
    struct data_usage usage = {0};
    struct repository_id saved;
    struct tree_base base;
    struct tree_export_result result;
    /* Only a guess: how much there is without counting. */
    error_free(backend_usage(export->engine->backend, &data, &usage));
    if (export->base.item) {
        base.root = export_record_manifest(export->base.item->record);
        base.origin.generation = export->base.item->record->origin->generation;
        base.origin.taken_s = export->base.item->record->origin->taken_s;
    }
    struct tree_export_options options = {
        .repository = export->use.repository,
        .chunks = export->writer,
        .root = export->fd,
        .work_directory = export->engine->cache_directory,
        .progress = export->progress,
        .expected_bytes = usage.used_bytes == DATA_USAGE_UNKNOWN ? 0 : usage.used_bytes,
        .base = export->base.item ? &base : NULL,
        .saved = saved_manifest(export, &saved),
        .save = save_tree,
        .context = export,
    };
    struct error *error = tree_export_run(&options, &result);
    export->manifest = result.root;
    export->record.entries = result.sum.entries;
    export->record.content_bytes = result.sum.bytes;
    export->record.bytes_read = result.bytes_read;
    return error;
}

static struct error *
find_extents(void *context, uint64_t offset, const struct extent_sink *sink)
{
    struct exporting *export = context;
    struct data data = snapshot_data(export->snapshot);
    return backend_extents(export->engine->backend, &data,
                           export->base.item ? &export->base.local : NULL, offset, sink);
}

struct error *
export_data_image(struct exporting *export)
{
    struct repository_id saved;
    struct image_base base = {0};
    struct image_export_result result;
    if (export->base.item) {
        base.root = export_record_manifest(export->base.item->record);
        base.size = (uint64_t) export->base.item->record->size_bytes;
    }
    struct image_export_options options = {
        .repository = export->use.repository,
        .chunks = export->writer,
        .fd = export->fd,
        .size = (uint64_t) export->snapshot->size_bytes,
        .progress = export->progress,
        .base = export->base.item ? &base : NULL,
        .extents = find_extents,
        .saved = saved_manifest(export, &saved),
        .saved_chunks = export->position ? export->position->count : 0,
        .save = save_image,
        .context = export,
    };
    struct error *error = image_export_run(&options, &result);
    export->manifest = result.root;
    export->record.content_bytes = options.size;
    export->record.bytes_read = result.bytes_read;
    return error;
}

struct error *
export_data_open(struct exporting *export)
{
    char path[PATH_MAX];
    struct data data = snapshot_data(export->snapshot);
    struct error *error = backend_path(export->engine->backend, &data, path, sizeof path);
    if (error)
        return error;
    int directory = data.kind == KIND_TREE ? O_DIRECTORY : 0;
    export->fd = open(path, O_RDONLY | directory | O_CLOEXEC | O_NOFOLLOW);
    return export->fd < 0 ? error_from_errno(errno, "open %s", path) : NULL;
}
