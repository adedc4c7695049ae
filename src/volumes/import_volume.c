/* SPDX-License-Identifier: Apache-2.0 */
/* Making a volume from a snapshot in a repository: see import.h. */
#include "exports/export_page.h"
#include "volumes/import.h"

static volume_capability *
make_capability(const export_record *record, struct arena *arena)
{
    volume_capability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__volume_capability__init(capability);
    capability->access_mode = arena_alloc(arena, sizeof *capability->access_mode);
    csi__v1__volume_capability__access_mode__init(capability->access_mode);
    capability->access_mode->mode =
        CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    if (record->kind == EXPORT_KIND(IMAGE) && !record->fs_type[0]) {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability->block = arena_alloc(arena, sizeof *capability->block);
        csi__v1__volume_capability__block_volume__init(capability->block);
        return capability;
    }
    capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    capability->mount = arena_alloc(arena, sizeof *capability->mount);
    csi__v1__volume_capability__mount_volume__init(capability->mount);
    capability->mount->fs_type = record->fs_type;
    return capability;
}

static struct error *
find_record(struct engine *engine, const struct import_request *request, struct arena *arena,
            struct export_item *out)
{
    struct repository_use use AUTO(repository_pool_release) = {0};
    struct error *error = repository_pool_open(engine, request->repository, &use);
    return error ? error : export_record_find(use.repository, request->snapshot, arena, out);
}

struct error *
import_volume(struct engine *engine, const struct import_request *request, struct arena *arena,
              const char **id, volume_record **out)
{
    struct export_item item;
    struct error *error = find_record(engine, request, arena, &item);
    if (error)
        return error;
    const export_record *record = item.record;
    /* The volume's record refers to it. */
    volume_capability **capability = arena_alloc(arena, sizeof *capability);
    *capability = make_capability(record, arena);
    struct volume_import source = {
        .repository = request->repository,
        .id = item.id,
        .kind = record->kind == EXPORT_KIND(IMAGE) ? KIND_IMAGE : KIND_TREE,
        .size_bytes = record->size_bytes,
        .fs_type = record->fs_type,
        .formatted_bytes = record->formatted_bytes,
        .blank = record->blank,
        .sector_bytes = record->sector_bytes,
        .nocow = record->nocow,
    };
    struct volume_request volume = {
        .name = request->name,
        .required_bytes = request->required_bytes ? request->required_bytes : record->size_bytes,
        .capabilities = capability,
        .capability_count = 1,
        .parameters = request->parameters,
        .source_kind = SOURCE_EXPORT,
        .import = &source,
        .wait_ms = request->wait_ms,
    };
    *id = item.id;
    return volume_create(engine, &volume, arena, out);
}
