/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API of the page: changes. Each is one CSI call; what takes longer than a browser waits goes
 * on as an operation, whose id is the answer.
 */
#include <string.h>

#include "csi/ids.h"
#include "message/message_map.h"
#include "proto/move.pb-c.h"
#include "web/api_internal.h"

#define COPY_MS 2000 /* then the page follows the operation */
#define MOVE_MS 1500
#define MOVE_VOLUME "move-volume" /* the kind of operation */

/* ---- the body ---- */

/* "" if it is not there or null. */
static struct error *
read_text(const struct api_request *request, const char *name, char **out)
{
    const struct json_value *value = json_value_member(request->body, name);
    const char *text = json_value_text(value);
    *out = (char *)(text ? text : "");
    if (!value || text || json_value_is_null(value))
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "%s: give a text", name);
}

static struct error *
need_text(const struct api_request *request, const char *name, char **out)
{
    struct error *error = read_text(request, name, out);
    if (!error && !(*out)[0])
        error = error_new(CODE_INVALID_ARGUMENT, "%s: give one", name);
    return error;
}

struct parameters {
    struct text_map map;
    struct arena *arena;
    bool is_wrong;
};

static void
take_parameter(void *context, const char *name, const struct json_value *value)
{
    struct parameters *parameters = context;
    const char *text = json_value_text(value);
    if (text)
        text_map_set(&parameters->map, parameters->arena, name, text);
    else
        parameters->is_wrong = true;
}

static struct error *
read_parameters(const struct api_request *request, Csi__V1__CreateVolumeRequest *out)
{
    const struct json_value *given = json_value_member(request->body, "parameters");
    struct parameters parameters = {.arena = request->arena};
    bool is_there = given && !json_value_is_null(given);
    json_value_each(given, take_parameter, &parameters);
    if (parameters.is_wrong || (is_there && !json_value_is_object(given)))
        return error_new(CODE_INVALID_ARGUMENT, "parameters: give an object of texts");
    message_map_write(&parameters.map, request->arena,
                      &csi__v1__create_volume_request__parameters_entry__descriptor,
                      &out->parameters, &out->n_parameters);
    return NULL;
}

/* ---- a volume ---- */

static struct error *
read_size(const struct api_request *request, Csi__V1__CreateVolumeRequest *out)
{
    const struct json_value *given = json_value_member(request->body, "sizeBytes");
    int64_t bytes = 0;
    if (!given || json_value_is_null(given))
        return NULL;
    if (!json_value_number(given, &bytes) || bytes < 0)
        return error_new(CODE_INVALID_ARGUMENT, "sizeBytes: give a number of bytes");
    if (!bytes)
        return NULL;
    out->capacity_range = arena_alloc(request->arena, sizeof *out->capacity_range);
    csi__v1__capacity_range__init(out->capacity_range);
    out->capacity_range->required_bytes = bytes;
    return NULL;
}

static struct error *
read_node(const struct api_request *request, Csi__V1__CreateVolumeRequest *out)
{
    struct arena *arena = request->arena;
    struct text_map segments = {0};
    char *node;
    struct error *error = read_text(request, "node", &node);
    if (error || !node[0] || !request->api->options.is_in_cluster)
        return error;
    Csi__V1__TopologyRequirement *requirement = arena_alloc(arena, sizeof *requirement);
    Csi__V1__Topology **terms = arena_alloc(arena, sizeof *terms);
    csi__v1__topology_requirement__init(requirement);
    terms[0] = arena_alloc(arena, sizeof *terms[0]);
    csi__v1__topology__init(terms[0]);
    text_map_set(&segments, arena, IDS_TOPOLOGY_NODE, node);
    message_map_write(&segments, arena, &csi__v1__topology__segments_entry__descriptor,
                      &terms[0]->segments, &terms[0]->n_segments);
    requirement->requisite = terms;
    requirement->n_requisite = 1;
    out->accessibility_requirements = requirement;
    return NULL;
}

/* With a source, "type" may be missing: `*type` is that of the source. */
static struct error *
read_source(struct api_request *request, Csi__V1__CreateVolumeRequest *out, char **type)
{
    Skycap__V1__GetVolumeRequest volume = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetSnapshotRequest snapshot = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse *of_volume;
    Skycap__V1__GetSnapshotResponse *of_snapshot;
    struct error *error = read_text(request, "sourceVolumeId", &volume.volume);
    if (!error)
        error = read_text(request, "sourceSnapshotId", &snapshot.snapshot);
    if (error || (!volume.volume[0] && !snapshot.snapshot[0]))
        return error;
    if (volume.volume[0] && snapshot.snapshot[0])
        return error_new(CODE_INVALID_ARGUMENT,
                         "sourceVolumeId and sourceSnapshotId exclude each other");
    Csi__V1__VolumeContentSource *source = arena_alloc(request->arena, sizeof *source);
    csi__v1__volume_content_source__init(source);
    out->volume_content_source = source;
    if (volume.volume[0]) {
        error = api_read(request, "skycap.v1.Inventory/GetVolume", &volume, &of_volume);
        source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
        source->volume = arena_alloc(request->arena, sizeof *source->volume);
        csi__v1__volume_content_source__volume_source__init(source->volume);
        source->volume->volume_id = volume.volume;
        *type = error ? "" : of_volume->volume->type;
        return error;
    }
    error = api_read(request, "skycap.v1.Inventory/GetSnapshot", &snapshot, &of_snapshot);
    source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
    source->snapshot = arena_alloc(request->arena, sizeof *source->snapshot);
    csi__v1__volume_content_source__snapshot_source__init(source->snapshot);
    source->snapshot->snapshot_id = snapshot.snapshot;
    *type = error ? "" : of_snapshot->snapshot->type;
    return error;
}

static void
set_type(const struct api_request *request, const char *type, Csi__V1__CreateVolumeRequest *out)
{
    struct arena *arena = request->arena;
    Csi__V1__VolumeCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__volume_capability__init(capability);
    capability->access_mode = arena_alloc(arena, sizeof *capability->access_mode);
    csi__v1__volume_capability__access_mode__init(capability->access_mode);
    capability->access_mode->mode =
        CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_MULTI_WRITER;
    if (strcmp(type, "block") == 0) {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability->block = arena_alloc(arena, sizeof *capability->block);
        csi__v1__volume_capability__block_volume__init(capability->block);
    } else {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
        capability->mount = arena_alloc(arena, sizeof *capability->mount);
        csi__v1__volume_capability__mount_volume__init(capability->mount);
        capability->mount->fs_type = strcmp(type, "directory") == 0 ? "" : (char *)type;
    }
    out->volume_capabilities = arena_alloc(arena, sizeof *out->volume_capabilities);
    out->volume_capabilities[0] = capability;
    out->n_volume_capabilities = 1;
}

static struct error *
read_volume(struct api_request *request, Csi__V1__CreateVolumeRequest *out)
{
    char *type = "directory", *wanted;
    struct error *error = need_text(request, "name", &out->name);
    if (!error)
        error = read_text(request, "type", &wanted);
    if (!error)
        error = read_size(request, out);
    if (!error)
        error = read_parameters(request, out);
    if (!error)
        error = read_node(request, out);
    if (!error)
        error = read_source(request, out, &type);
    if (!error)
        set_type(request, wanted[0] ? wanted : type, out);
    return error;
}

static bool
is_under_way(const struct error *error)
{
    return error && (error->code == CODE_ABORTED || error->code == CODE_DEADLINE_EXCEEDED);
}

/* A copy that takes longer: its operation has the id of the volume. Takes the error. */
static struct error *
answer_copy(struct api_request *request, char *name, struct error *error)
{
    Skycap__V1__GetVolumeRequest asked = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse *reply;
    asked.volume = name;
    struct error *failure AUTO(error_cleanup) =
        api_read(request, "skycap.v1.Inventory/GetVolume", &asked, &reply);
    if (failure)
        return error;
    error_free(error);
    request->answer->status = reply->volume->ready ? 201 : 202;
    json_writer_text(&request->out, reply->volume->ready ? "id" : "operation",
                     reply->volume->volume->volume_id);
    json_writer_text(&request->out, "name", name);
    return NULL;
}

struct error *
api_create_volume(struct api_request *request)
{
    Csi__V1__CreateVolumeRequest asked = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse *reply;
    struct error *error = read_volume(request, &asked);
    if (error)
        return error;
    bool is_copy = asked.volume_content_source;
    error = api_ask(request->api, request->arena, is_copy ? COPY_MS : API_CHANGE_MS,
                    "csi.v1.Controller/CreateVolume", &asked, &reply);
    if (is_copy && is_under_way(error))
        return answer_copy(request, asked.name, error);
    if (error)
        return error;
    request->answer->status = 201;
    json_writer_text(&request->out, "id", reply->volume->volume_id);
    json_writer_text(&request->out, "name", asked.name);
    return NULL;
}

struct error *
api_delete_volume(struct api_request *request)
{
    Csi__V1__DeleteVolumeRequest asked = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse *reply;
    struct error *error = need_text(request, "id", &asked.volume_id);
    return error ? error
                 : api_ask(request->api, request->arena, API_CHANGE_MS,
                           "csi.v1.Controller/DeleteVolume", &asked, &reply);
}

/* ---- snapshots ---- */

/* One that is still copied is under way as an operation, which has its id. */
static void
print_snapshot(struct api_request *request, char *name, const Csi__V1__Snapshot *snapshot)
{
    struct json_writer *out = &request->out;
    request->answer->status = snapshot->ready_to_use ? 201 : 202;
    json_writer_text(out, "id", snapshot->snapshot_id);
    json_writer_text(out, "name", name);
    json_writer_bool(out, "ready", snapshot->ready_to_use);
    json_writer_text(out, "operation", snapshot->ready_to_use ? "" : snapshot->snapshot_id);
}

/* The call has no answer yet: the snapshot is found by its name. Takes the error. */
static struct error *
answer_slow_snapshot(struct api_request *request, char *name, struct error *error)
{
    Skycap__V1__GetSnapshotRequest asked = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetSnapshotResponse *reply;
    asked.snapshot = name;
    struct error *failure AUTO(error_cleanup) =
        api_read(request, "skycap.v1.Inventory/GetSnapshot", &asked, &reply);
    if (failure)
        return error;
    error_free(error);
    print_snapshot(request, name, reply->snapshot->snapshot);
    return NULL;
}

struct error *
api_create_snapshot(struct api_request *request)
{
    Csi__V1__CreateSnapshotRequest asked = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    struct error *error = need_text(request, "name", &asked.name);
    if (!error)
        error = need_text(request, "volumeId", &asked.source_volume_id);
    if (error)
        return error;
    error = api_ask(request->api, request->arena, API_CHANGE_MS, "csi.v1.Controller/CreateSnapshot",
                    &asked, &reply);
    if (is_under_way(error))
        return answer_slow_snapshot(request, asked.name, error);
    if (error)
        return error;
    print_snapshot(request, asked.name, reply->snapshot);
    return NULL;
}

struct error *
api_delete_snapshot(struct api_request *request)
{
    Csi__V1__DeleteSnapshotRequest asked = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__DeleteSnapshotResponse *reply;
    struct error *error = need_text(request, "id", &asked.snapshot_id);
    return error ? error
                 : api_ask(request->api, request->arena, API_CHANGE_MS,
                           "csi.v1.Controller/DeleteSnapshot", &asked, &reply);
}

/* ---- moves and operations ---- */

struct search {
    const char *volume_id;
    const char *found; /* the operation; NULL: none */
};

static void
look_for_move(void *context, const Skycap__V1__Operation *operation)
{
    struct search *search = context;
    if (operation->state == SKYCAP__V1__OPERATION__STATE__RUNNING &&
        strcmp(operation->kind, MOVE_VOLUME) == 0 &&
        strcmp(operation->subject, search->volume_id) == 0)
        search->found = operation->id;
}

/*
 * ABORTED may also mean that something else is done with the volume, and that nothing has begun:
 * only the operation shows that the volume moves. Takes the error.
 */
static struct error *
answer_move(struct api_request *request, const char *volume_id, struct error *error)
{
    struct search search = {.volume_id = volume_id};
    struct error *failure AUTO(error_cleanup) = api_each_operation(request, look_for_move, &search);
    if (failure || !search.found)
        return error;
    error_free(error);
    request->answer->status = 202;
    json_writer_text(&request->out, "operation", search.found);
    return NULL;
}

struct error *
api_move_volume(struct api_request *request)
{
    Skycap__V1__MoveVolumeRequest asked = SKYCAP__V1__MOVE_VOLUME_REQUEST__INIT;
    Skycap__V1__MoveVolumeReply *reply;
    struct error *error = need_text(request, "volumeId", &asked.volume_id);
    if (!error)
        error = need_text(request, "node", &asked.node_id);
    if (!error)
        error =
            api_ask(request->api, request->arena, MOVE_MS, "skycap.v1.Moves/Move", &asked, &reply);
    if (is_under_way(error))
        return answer_move(request, asked.volume_id, error);
    if (!error)
        json_writer_text(&request->out, "operation", "");
    return error;
}

struct error *
api_cancel_operation(struct api_request *request)
{
    Skycap__V1__CancelOperationRequest asked = SKYCAP__V1__CANCEL_OPERATION_REQUEST__INIT;
    Skycap__V1__Operation *operation;
    struct error *error = need_text(request, "id", &asked.id);
    if (!error)
        error = api_ask(request->api, request->arena, API_CHANGE_MS, "skycap.v1.Operations/Cancel",
                        &asked, &operation);
    if (!error)
        json_writer_text(&request->out, "state", api_operation_state(operation));
    return error;
}
