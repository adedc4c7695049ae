/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller: volumes. */
#include <string.h>

#include "csi/checks.h"
#include "csi/controller_internal.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "csi/topology.h"
#include "message/message_map.h"
#include "node/image_fs.h"
#include "node/use.h"
#include "volumes/spec.h"
#include "volumes/volume.h"

/* ---- create and delete ---- */

static struct error *
read_source(const Csi__V1__VolumeContentSource *source, struct volume_request *out)
{
    if (!source)
        return NULL;
    const char *id = "";
    if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME) {
        out->source_kind = SOURCE_VOLUME;
        id = source->volume->volume_id;
        out->source_handle = ids_handle(ID_VOLUME, id);
    } else if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT) {
        out->source_kind = SOURCE_SNAPSHOT;
        id = source->snapshot->snapshot_id;
        out->source_handle = ids_handle(ID_SNAPSHOT, id);
    } else {
        return error_new(CODE_INVALID_ARGUMENT, "volume_content_source is empty");
    }
    struct error *error = checks_id("the source's id", id);
    if (!error && !out->source_handle)
        error = error_new(CODE_NOT_FOUND, "there is no source \"%s\"", id);
    return error;
}

/* Takes the router's parameter away, which is no property of the volume. */
static void
read_chosen(struct volume_request *out)
{
    struct text_map all = out->parameters;
    out->parameters.count = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (strcmp(all.pairs[i].key, CONTROLLER_CHOSEN) == 0)
            out->is_chosen = true;
        else
            out->parameters.pairs[out->parameters.count++] = all.pairs[i];
    }
}

static struct error *
read_request(const Csi__V1__CreateVolumeRequest *request, struct arena *arena,
             struct volume_request *out)
{
    *out = (struct volume_request){
        .name = request->name,
        .capabilities = request->volume_capabilities,
        .capability_count = request->n_volume_capabilities,
        .parameters = message_map_read(request->parameters, request->n_parameters, arena),
        .mutable_parameters =
            message_map_read(request->mutable_parameters, request->n_mutable_parameters, arena),
    };
    read_chosen(out);
    if (request->capacity_range) {
        out->required_bytes = request->capacity_range->required_bytes;
        out->limit_bytes = request->capacity_range->limit_bytes;
    }
    struct error *error = checks_create(request);
    if (!error)
        error = read_source(request->volume_content_source, out);
    return error;
}

HANDLER(controller_create_volume, CreateVolume)
{
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    struct volume_request wanted;
    volume_record *record;
    struct error *error = read_request(request, arena, &wanted);
    wanted.wait_ms = controller_wait_ms(call);
    if (!error)
        error = topology_check(engine, request->accessibility_requirements, arena);
    if (!error)
        error = volume_create(engine, &wanted, arena, &record);
    if (!error)
        reply->volume = messages_volume(engine, record, arena);
    return error;
}

HANDLER(controller_delete_volume, DeleteVolume)
{
    (void)reply;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    const char *handle = ids_handle(ID_VOLUME, request->volume_id);
    if (error || !handle)
        return error;
    return volume_delete(controller_engine(call), handle);
}

/* ---- asking ---- */

/* Why the volume does not match the request; NULL: it does. Volumes have no volume_context. */
static const char *
find_obstacle(struct engine *engine, volume_record *volume,
              const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct arena *arena)
{
    for (size_t i = 0; i < request->n_volume_capabilities; i++) {
        const volume_capability *capability = request->volume_capabilities[i];
        bool is_new;
        struct error *obstacle AUTO(error_cleanup) =
            capability_is_block(capability) ? NULL : image_fs_find(engine, volume, arena, &is_new);
        if (!obstacle)
            obstacle = use_check_capability(volume, capability);
        if (obstacle)
            return arena_string(arena, obstacle->message);
    }
    struct text_map is = message_map_read(volume->parameters, volume->n_parameters, arena);
    struct text_map asked = message_map_read(request->parameters, request->n_parameters, arena);
    if (asked.count && !spec_same_parameters(&is, &asked))
        return "the volume has other parameters";
    is = message_map_read(volume->mutable_parameters, volume->n_mutable_parameters, arena);
    asked = message_map_read(request->mutable_parameters, request->n_mutable_parameters, arena);
    for (size_t i = 0; i < asked.count; i++) {
        const char *value = text_map_find(&is, asked.pairs[i].key);
        if (!spec_is_sidecar_key(asked.pairs[i].key) &&
            (!value || strcmp(value, asked.pairs[i].value) != 0))
            return "the volume has other mutable parameters";
    }
    return request->n_volume_context ? "the volume has no volume_context" : NULL;
}

HANDLER(controller_validate_capabilities, ValidateVolumeCapabilities)
{
    struct arena *arena = call_arena(call);
    volume_record *volume;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = controller_find_volume(call, request->volume_id, &volume);
    if (!error)
        error = checks_capabilities(request->volume_capabilities, request->n_volume_capabilities);
    if (error)
        return error;
    messages_confirm(request, find_obstacle(controller_engine(call), volume, request, arena), arena,
                     reply);
    return NULL;
}

static Csi__V1__ListVolumesResponse__Entry *
list_entry(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    Csi__V1__ListVolumesResponse__Entry *entry = arena_alloc(arena, sizeof *entry);
    csi__v1__list_volumes_response__entry__init(entry);
    entry->volume = messages_volume(engine, volume, arena);
    entry->status = arena_alloc(arena, sizeof *entry->status);
    csi__v1__list_volumes_response__volume_status__init(entry->status);
    entry->status->published_node_ids =
        messages_node_ids(volume, arena, &entry->status->n_published_node_ids);
    struct health_report health = {0};
    health_check_volume(engine, volume, arena, &health);
    entry->status->volume_condition = messages_condition(&health, arena);
    return entry;
}

/* A token is the handle of the last volume on the page before. */
HANDLER(controller_list_volumes, ListVolumes)
{
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    struct volume_page page;
    const char *after;
    struct error *error =
        ids_read_page(ID_VOLUME, request->starting_token, request->max_entries, &after);
    if (!error)
        error = volume_list(engine, after, controller_limit(request->max_entries), arena, &page);
    if (error)
        return error;
    reply->entries = arena_alloc(arena, page.count * sizeof(void *));
    for (; reply->n_entries < page.count; reply->n_entries++)
        reply->entries[reply->n_entries] =
            list_entry(engine, page.volumes[reply->n_entries], arena);
    if (page.next)
        reply->next_token = ids_print(ID_VOLUME, page.next, arena);
    return NULL;
}

HANDLER(controller_get_volume, ControllerGetVolume)
{
    struct arena *arena = call_arena(call);
    volume_record *volume;
    struct error *error = controller_find_shown(call, request->volume_id, &volume);
    if (error)
        return error;
    reply->volume = messages_volume(controller_engine(call), volume, arena);
    reply->status = arena_alloc(arena, sizeof *reply->status);
    csi__v1__controller_get_volume_response__volume_status__init(reply->status);
    reply->status->published_node_ids =
        messages_node_ids(volume, arena, &reply->status->n_published_node_ids);
    struct health_report health = {0};
    error = controller_check_health(controller_engine(call), volume, arena, &health);
    reply->status->volume_condition = messages_condition(&health, arena);
    return error;
}

/* The back end that the parameters name, or the default; NULL if it does not exist. */
static struct backend *
find_backend(struct engine *engine, const Csi__V1__GetCapacityRequest *request, struct arena *arena)
{
    struct text_map map = message_map_read(request->parameters, request->n_parameters, arena);
    const char *name = text_map_find(&map, "backend");
    struct backend *backend = engine->backend;
    error_free(name ? backend_find(engine->backend, name, &backend) : NULL);
    return backend;
}

/* Orchestrators compare claims with this rather than with available_capacity. */
static Google__Protobuf__Int64Value *
largest_volume(const struct backend_capacity *capacity, unsigned percent, struct arena *arena)
{
    Google__Protobuf__Int64Value *size = arena_alloc(arena, sizeof *size);
    google__protobuf__int64_value__init(size);
    bool is_exact = !percent || percent == 100;
    uint64_t bytes =
        is_exact ? capacity->available_bytes : capacity->available_bytes / 100 * percent;
    uint64_t most = capacity->largest_volume_bytes;
    if (most && most < bytes)
        bytes = most;
    size->value = bytes < SPEC_LARGEST_BYTES ? (int64_t)bytes : SPEC_LARGEST_BYTES;
    return size;
}

/* Nothing is available in a back end that cannot be written to. */
static struct error *
find_capacity(struct backend *backend, struct backend_capacity *out)
{
    struct error *error = backend_capacity(backend, out);
    struct error *read_only AUTO(error_cleanup) = error ? NULL : backend_check(backend);
    if (read_only)
        out->available_bytes = 0;
    return error;
}

HANDLER(controller_get_capacity, GetCapacity)
{
    const struct controller *controller = call_context(call);
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    struct backend_capacity capacity;
    struct error *error = checks_maps(&request->base);
    if (error)
        return error;
    struct backend *backend = find_backend(engine, request, arena);
    bool is_elsewhere = request->accessible_topology &&
                        !topology_is_here(engine, request->accessible_topology, arena);
    if (!backend || is_elsewhere)
        return NULL; /* no capacity that this node knows of */
    error = find_capacity(backend, &capacity);
    if (error)
        return error;
    reply->available_capacity = (int64_t)capacity.available_bytes;
    reply->maximum_volume_size =
        largest_volume(&capacity, controller->overprovisioning_percent, arena);
    return NULL;
}

/* ---- changing ---- */

HANDLER(controller_expand_volume, ControllerExpandVolume)
{
    volume_record *volume;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (!error && !request->capacity_range)
        error = error_new(CODE_INVALID_ARGUMENT, "capacity_range is missing");
    if (!error)
        error = checks_capacity(request->capacity_range);
    if (!error)
        error = controller_find_volume(call, request->volume_id, &volume);
    if (!error)
        error = volume_expand(controller_engine(call), volume->handle,
                              request->capacity_range->required_bytes,
                              request->capacity_range->limit_bytes, &reply->capacity_bytes);
    if (!error)
        reply->node_expansion_required =
            volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE;
    return error;
}

HANDLER(controller_modify_volume, ControllerModifyVolume)
{
    (void)reply;
    volume_record *volume = NULL;
    struct text_map wanted = message_map_read(request->mutable_parameters,
                                              request->n_mutable_parameters, call_arena(call));
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = controller_find_volume(call, request->volume_id, &volume);
    return error ? error : volume_modify(controller_engine(call), volume->handle, &wanted);
}
