/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Node: the table of handlers, capabilities and NodeGetInfo. */
#include "csi/node.h"

#include "csi/node_internal.h"
#include "csi/topology.h"

#define RPC(name) CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name

static const struct {
    Csi__V1__NodeServiceCapability__RPC__Type type;
    bool is_of_1_13;
} capabilities[] = {
    {RPC(STAGE_UNSTAGE_VOLUME), false},
    {RPC(GET_VOLUME_STATS), false},
    {RPC(EXPAND_VOLUME), false},
    {RPC(VOLUME_CONDITION), false},
    {RPC(SINGLE_NODE_MULTI_WRITER), false},
    {RPC(VOLUME_MOUNT_GROUP), false},
    {RPC(GET_VOLUME_HEALTH), true},
    {RPC(GET_STORAGE_HEALTH), true},
};

static Csi__V1__NodeServiceCapability *
make_capability(Csi__V1__NodeServiceCapability__RPC__Type type, struct arena *arena)
{
    Csi__V1__NodeServiceCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__node_service_capability__init(capability);
    capability->type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
    capability->rpc = arena_alloc(arena, sizeof *capability->rpc);
    csi__v1__node_service_capability__rpc__init(capability->rpc);
    capability->rpc->type = type;
    return capability;
}

static struct error *
get_capabilities(struct call *call, const Csi__V1__NodeGetCapabilitiesRequest *request,
                 Csi__V1__NodeGetCapabilitiesResponse *reply)
{
    (void)request;
    const struct controller *controller = call_context(call);
    struct arena *arena = call_arena(call);
    reply->capabilities = arena_alloc(arena, COUNT_OF(capabilities) * sizeof(void *));
    for (size_t i = 0; i < COUNT_OF(capabilities); i++)
        if (!capabilities[i].is_of_1_13 || controller->advertises_csi_1_13)
            reply->capabilities[reply->n_capabilities++] =
                make_capability(capabilities[i].type, arena);
    return NULL;
}

static struct error *
get_info(struct call *call, const Csi__V1__NodeGetInfoRequest *request,
         Csi__V1__NodeGetInfoResponse *reply)
{
    (void)request;
    const struct controller *controller = call_context(call);
    reply->node_id = (char *)controller->engine->node_id;
    reply->max_volumes_per_node = (int64_t)controller->max_volumes_per_node;
    reply->accessible_topology = topology_of_node(controller->engine, call_arena(call));
    return NULL;
}

const struct csi_v1_node node_handlers = {
    .node_get_capabilities = {get_capabilities, .on_loop = true},
    .node_get_info = {get_info, .on_loop = true},
    .node_stage_volume = {node_stage_volume},
    .node_unstage_volume = {node_unstage_volume},
    .node_publish_volume = {node_publish_volume},
    .node_unpublish_volume = {node_unpublish_volume},
    .node_get_volume_stats = {node_get_volume_stats},
    .node_expand_volume = {node_expand_volume},
    .node_get_volume_health = {node_get_volume_health},
    .node_get_storage_health = {node_get_storage_health},
};
