/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Node: usage, size and health of volumes. */
#include <string.h>

#include "csi/checks.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "csi/node_internal.h"
#include "node/ephemeral.h"
#include "node/image_fs.h"
#include "node/stage.h"
#include "node/usage.h"
#include "volumes/volume.h"

/* By an id of this node, or of an ephemeral volume. */
static struct error *
find_volume(struct call *call, const char *id, volume_record **out)
{
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    struct error *error = checks_id("volume_id", id);
    const char *handle = ids_handle(ID_VOLUME, id);
    if (!error && !handle)
        error = ephemeral_find(engine, id, arena, &handle);
    if (!error && !handle)
        error = error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", id);
    return error ? error : volume_get(engine, handle, arena, out);
}

static struct error *
find_use(struct call *call, const volume_record *volume, const char *path, mount_record **out)
{
    struct mount_list uses;
    struct error *error =
        mount_rows_list(controller_engine(call), volume->handle, call_arena(call), &uses);
    if (error)
        return error;
    *out = mount_rows_find_same(&uses, path);
    if (!*out)
        return error_new(CODE_NOT_FOUND, "the volume is not at %s", path);
    return NULL;
}

/* ---- stats ---- */

HANDLER(node_get_volume_stats, NodeGetVolumeStats)
{
    struct arena *arena = call_arena(call);
    volume_record *volume;
    mount_record *at;
    struct volume_usage usage;
    struct health_report health = {0};
    struct error *error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_present("volume_path", request->volume_path);
    if (!error)
        error = find_volume(call, request->volume_id, &volume);
    if (!error)
        error = find_use(call, volume, request->volume_path, &at);
    if (!error)
        error = usage_measure(controller_engine(call), volume, request->volume_path, &usage);
    if (!error)
        error = health_check_uses(controller_engine(call), volume, arena, &health);
    if (error)
        return error;
    messages_add_usage(&usage, arena, reply);
    reply->volume_condition = messages_condition(&health, arena);
    return NULL;
}

/* ---- expansion ---- */

static struct error *
check_grown(const volume_record *volume, const Csi__V1__CapacityRange *range)
{
    if (!range)
        return NULL;
    if (range->required_bytes > volume->size_bytes)
        return error_new(CODE_OUT_OF_RANGE,
                         "the volume has %jd bytes; ControllerExpandVolume must grow it first",
                         (intmax_t)volume->size_bytes);
    if (range->limit_bytes && range->limit_bytes < volume->size_bytes)
        return error_new(CODE_OUT_OF_RANGE, "the volume has %jd bytes already",
                         (intmax_t)volume->size_bytes);
    return NULL;
}

static struct error *
grow(struct engine *engine, const char *handle, const mount_record *at, struct arena *arena)
{
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, arena, &held);
    bool is_block = capability_is_block(at->capability);
    return error ? error : image_fs_expand(engine, &held, is_block ? NULL : at->path, arena);
}

HANDLER(node_expand_volume, NodeExpandVolume)
{
    volume_record *volume;
    mount_record *at;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_present("volume_path", request->volume_path);
    if (!error)
        error = checks_capacity(request->capacity_range);
    if (!error)
        error = find_volume(call, request->volume_id, &volume);
    if (!error)
        error = find_use(call, volume, request->volume_path, &at);
    if (!error)
        error = check_grown(volume, request->capacity_range);
    if (!error)
        error = grow(controller_engine(call), volume->handle, at, call_arena(call));
    if (!error)
        reply->capacity_bytes = volume->size_bytes;
    return error;
}

/* ---- health ---- */

HANDLER(node_get_volume_health, NodeGetVolumeHealth)
{
    struct arena *arena = call_arena(call);
    struct health_report health = {0};
    volume_record *volume;
    struct error *error = find_volume(call, request->volume_id, &volume);
    if (error)
        return error;
    error = controller_check_health(controller_engine(call), volume, arena, &health);
    if (!error)
        reply->volume_health = messages_health(request->volume_id, &health, arena);
    return error;
}

HANDLER(node_get_storage_health, NodeGetStorageHealth)
{
    (void)request;
    struct arena *arena = call_arena(call);
    struct health_report health = {0};
    health_check_backend(controller_engine(call), arena, &health);
    reply->backend_health = arena_alloc(arena, health.count * sizeof(void *));
    for (; reply->n_backend_health < health.count; reply->n_backend_health++) {
        const struct problem *problem = &health.problems[reply->n_backend_health];
        Csi__V1__NodeGetStorageHealthResponse__StorageBackendHealth *entry =
            arena_alloc(arena, sizeof *entry);
        csi__v1__node_get_storage_health_response__storage_backend_health__init(entry);
        entry->status = problem->kind == PROBLEM_DEGRADED
                            ? CSI__V1__STORAGE_HEALTH_ERROR_TYPE__STORAGE_DEGRADED
                            : CSI__V1__STORAGE_HEALTH_ERROR_TYPE__STORAGE_UNREACHABLE;
        entry->reason = (char *)problem->reason;
        entry->message = (char *)problem->message;
        reply->backend_health[reply->n_backend_health] = entry;
    }
    return NULL;
}
