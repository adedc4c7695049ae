/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.GroupController: see group_controller.h. */
#include "csi/group_controller.h"

#include <string.h>

#include "csi/checks.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "message/message_map.h"
#include "proto/csi.rpc.h"
#include "rpc/server/call.h"
#include "volumes/group.h"

static struct error *
get_capabilities(struct call *call, const Csi__V1__GroupControllerGetCapabilitiesRequest *request,
                 Csi__V1__GroupControllerGetCapabilitiesResponse *reply)
{
    (void)request;
    struct arena *arena = call_arena(call);
    if (!group_is_possible(controller_engine(call)))
        return NULL;
    Csi__V1__GroupControllerServiceCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__group_controller_service_capability__init(capability);
    capability->type_case = CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
    capability->rpc = arena_alloc(arena, sizeof *capability->rpc);
    csi__v1__group_controller_service_capability__rpc__init(capability->rpc);
    capability->rpc->type =
        CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT;
    reply->capabilities = arena_alloc(arena, sizeof(void *));
    reply->capabilities[reply->n_capabilities++] = capability;
    return NULL;
}

/* ---- creating ---- */

static struct error *
read_source_ids(char *const *ids, size_t count, const char **handles)
{
    for (size_t i = 0; i < count; i++) {
        struct error *error = checks_id("source_volume_ids", ids[i]);
        if (!error)
            error = ids_find_handle(ID_VOLUME, ids[i], &handles[i]);
        if (error)
            return error;
    }
    return NULL;
}

static Csi__V1__VolumeGroupSnapshot *
group_message(struct call *call, const struct group *group)
{
    Csi__V1__VolumeGroupSnapshot *message = messages_group(group, call_arena(call));
    for (size_t i = 0; i < message->n_snapshots; i++)
        messages_set_topology(call_context(call), message->snapshots[i], call_arena(call));
    return message;
}

static struct error *
create_group(struct call *call, const Csi__V1__CreateVolumeGroupSnapshotRequest *request,
             Csi__V1__CreateVolumeGroupSnapshotResponse *reply)
{
    struct arena *arena = call_arena(call);
    struct text_map parameters =
        message_map_read(request->parameters, request->n_parameters, arena);
    const char **sources = arena_alloc(arena, request->n_source_volume_ids * sizeof *sources);
    struct group group;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_name("name", request->name);
    if (!error && !request->n_source_volume_ids)
        error = error_new(CODE_INVALID_ARGUMENT, "source_volume_ids is missing");
    if (!error)
        error = read_source_ids(request->source_volume_ids, request->n_source_volume_ids, sources);
    if (!error)
        error = group_create(controller_engine(call), request->name, sources,
                             request->n_source_volume_ids, &parameters, arena, &group);
    if (!error)
        reply->group_snapshot = group_message(call, &group);
    return error;
}

/* ---- finding and deleting ---- */

static bool
is_member(const group_record *group, const char *id)
{
    const char *handle = ids_handle(ID_SNAPSHOT, id);
    for (size_t i = 0; handle && i < group->n_snapshot_handles; i++)
        if (strcmp(group->snapshot_handles[i], handle) == 0)
            return true;
    return false;
}

static bool
is_repeated(char *const *ids, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(ids[i], ids[index]) == 0)
            return true;
    return false;
}

/* The caller may name the members, or not. */
static struct error *
check_members(const group_record *group, char *const *ids, size_t count)
{
    if (!count)
        return NULL;
    if (count != group->n_snapshot_handles)
        return error_new(CODE_INVALID_ARGUMENT,
                         "snapshot_ids has %zu entries, but the group has %zu snapshots", count,
                         group->n_snapshot_handles);
    for (size_t i = 0; i < count; i++)
        if (!is_member(group, ids[i]) || is_repeated(ids, i))
            return error_new(
                CODE_INVALID_ARGUMENT,
                "snapshot_ids: \"%s\" is not a snapshot of the group, or is listed twice", ids[i]);
    return NULL;
}

/* Checks that the group exists and has the named members, if any. */
static struct error *
check_group(struct call *call, const char *id, char *const *snapshot_ids, size_t count)
{
    group_record *group;
    const char *handle;
    struct error *error = checks_id("group_snapshot_id", id);
    if (!error)
        error = ids_find_handle(ID_GROUP, id, &handle);
    if (!error)
        error = group_get_record(controller_engine(call), handle, call_arena(call), &group);
    return error ? error : check_members(group, snapshot_ids, count);
}

static struct error *
delete_group(struct call *call, const Csi__V1__DeleteVolumeGroupSnapshotRequest *request,
             Csi__V1__DeleteVolumeGroupSnapshotResponse *reply)
{
    (void)reply;
    const char *id = request->group_snapshot_id;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = check_group(call, id, request->snapshot_ids, request->n_snapshot_ids);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    return group_delete(controller_engine(call), ids_handle(ID_GROUP, id));
}

static struct error *
get_group(struct call *call, const Csi__V1__GetVolumeGroupSnapshotRequest *request,
          Csi__V1__GetVolumeGroupSnapshotResponse *reply)
{
    struct arena *arena = call_arena(call);
    const char *id = request->group_snapshot_id;
    struct group group;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = check_group(call, id, request->snapshot_ids, request->n_snapshot_ids);
    if (!error)
        error = group_get(controller_engine(call), ids_handle(ID_GROUP, id), arena, &group);
    if (!error)
        reply->group_snapshot = group_message(call, &group);
    return error;
}

const struct csi_v1_group_controller group_controller_handlers = {
    .group_controller_get_capabilities = {get_capabilities, .on_loop = true},
    .create_volume_group_snapshot = {create_group},
    .delete_volume_group_snapshot = {delete_group},
    .get_volume_group_snapshot = {get_group},
};
