/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller: the table of handlers, and the capabilities. */
#include "csi/controller.h"

#include "csi/controller_internal.h"

#define RPC(name) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name

static void
add_capability(struct arena *arena, Csi__V1__ControllerGetCapabilitiesResponse *reply, int type)
{
    Csi__V1__ControllerServiceCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__controller_service_capability__init(capability);
    capability->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
    capability->rpc = arena_alloc(arena, sizeof *capability->rpc);
    csi__v1__controller_service_capability__rpc__init(capability->rpc);
    capability->rpc->type = (Csi__V1__ControllerServiceCapability__RPC__Type)type;
    reply->capabilities[reply->n_capabilities++] = capability;
}

/* Derived from the functions of the back end. */
static struct error *
get_capabilities(struct call *call, const Csi__V1__ControllerGetCapabilitiesRequest *request,
                 Csi__V1__ControllerGetCapabilitiesResponse *reply)
{
    (void)request;
    const struct controller *controller = call_context(call);
    const struct backend_ops *ops = controller->engine->backend->ops;
    const struct {
        int type;
        bool can;
    } capabilities[] = {
        {RPC(CREATE_DELETE_VOLUME), ops->create},
        {RPC(PUBLISH_UNPUBLISH_VOLUME), true},
        {RPC(PUBLISH_READONLY), true},
        {RPC(LIST_VOLUMES), true},
        {RPC(LIST_VOLUMES_PUBLISHED_NODES), true},
        {RPC(GET_VOLUME), true},
        {RPC(GET_CAPACITY), ops->capacity},
        {RPC(CREATE_DELETE_SNAPSHOT), ops->copy},
        {RPC(LIST_SNAPSHOTS), ops->copy},
        {RPC(GET_SNAPSHOT), ops->copy},
        {RPC(CLONE_VOLUME), ops->copy},
        {RPC(EXPAND_VOLUME), ops->change},
        {RPC(MODIFY_VOLUME), ops->change},
        {RPC(SINGLE_NODE_MULTI_WRITER), true},
        {RPC(VOLUME_CONDITION), true},
        {RPC(GET_VOLUME_HEALTH), controller->advertises_csi_1_13},
        {RPC(LIST_VOLUME_HEALTH), controller->advertises_csi_1_13},
    };
    struct arena *arena = call_arena(call);
    reply->capabilities = arena_alloc(arena, COUNT_OF(capabilities) * sizeof(void *));
    for (size_t i = 0; i < COUNT_OF(capabilities); i++)
        if (capabilities[i].can)
            add_capability(arena, reply, capabilities[i].type);
    return NULL;
}

const struct csi_v1_controller controller_handlers = {
    .controller_get_capabilities = {get_capabilities, .on_loop = true},
    .create_volume = {controller_create_volume},
    .delete_volume = {controller_delete_volume},
    .validate_volume_capabilities = {controller_validate_capabilities},
    .list_volumes = {controller_list_volumes},
    .controller_get_volume = {controller_get_volume},
    .controller_get_volume_health = {controller_get_volume_health},
    .controller_list_volume_health = {controller_list_volume_health},
    .get_capacity = {controller_get_capacity},
    .controller_expand_volume = {controller_expand_volume},
    .controller_modify_volume = {controller_modify_volume},
    .controller_publish_volume = {controller_publish_volume},
    .controller_unpublish_volume = {controller_unpublish_volume},
    .create_snapshot = {controller_create_snapshot},
    .delete_snapshot = {controller_delete_snapshot},
    .list_snapshots = {controller_list_snapshots},
    .get_snapshot = {controller_get_snapshot},
};
