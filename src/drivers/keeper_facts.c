/* SPDX-License-Identifier: Apache-2.0 */
/* From a CSI driver's answers to facts: see keeper_facts.h. */
#include "drivers/keeper_facts.h"

/*
 * A kind that a newer specification has numbered beyond the bits there are is not known here
 * anyway.
 */
static uint64_t
bit_of(int type)
{
    return type > 0 && type < 64 ? UINT64_C(1) << type : 0;
}

void
keeper_facts_take_info(struct driver_facts *facts, const Csi__V1__GetPluginInfoResponse *answer)
{
    facts->plugin_name = arena_string(&facts->arena, answer->name);
    facts->plugin_version = arena_string(&facts->arena, answer->vendor_version);
}

void
keeper_facts_take_plugin(struct driver_facts *facts,
                         const Csi__V1__GetPluginCapabilitiesResponse *answer)
{
    facts->services = facts->expansion = 0;
    for (size_t i = 0; i < answer->n_capabilities; i++) {
        const Csi__V1__PluginCapability *one = answer->capabilities[i];
        if (one->type_case == CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE)
            facts->services |= bit_of((int)one->service->type);
        else if (one->type_case == CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION)
            facts->expansion |= bit_of((int)one->volume_expansion->type);
    }
}

void
keeper_facts_take_controller(struct driver_facts *facts,
                             const Csi__V1__ControllerGetCapabilitiesResponse *answer)
{
    facts->controller = 0;
    for (size_t i = 0; i < answer->n_capabilities; i++) {
        const Csi__V1__ControllerServiceCapability *one = answer->capabilities[i];
        if (one->type_case == CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC)
            facts->controller |= bit_of((int)one->rpc->type);
    }
}

void
keeper_facts_take_group(struct driver_facts *facts,
                        const Csi__V1__GroupControllerGetCapabilitiesResponse *answer)
{
    facts->group = 0;
    for (size_t i = 0; i < answer->n_capabilities; i++) {
        const Csi__V1__GroupControllerServiceCapability *one = answer->capabilities[i];
        if (one->type_case == CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC)
            facts->group |= bit_of((int)one->rpc->type);
    }
}

void
keeper_facts_take_node(struct driver_facts *facts,
                       const Csi__V1__NodeGetCapabilitiesResponse *answer)
{
    facts->node = 0;
    for (size_t i = 0; i < answer->n_capabilities; i++) {
        const Csi__V1__NodeServiceCapability *one = answer->capabilities[i];
        if (one->type_case == CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC)
            facts->node |= bit_of((int)one->rpc->type);
    }
}

void
keeper_facts_take_node_info(struct driver_facts *facts, const Csi__V1__NodeGetInfoResponse *answer)
{
    struct arena *arena = &facts->arena;
    const Csi__V1__Topology *topology = answer->accessible_topology;
    facts->node_id = arena_string(arena, answer->node_id);
    facts->max_volumes_per_node =
        answer->max_volumes_per_node > 0 ? answer->max_volumes_per_node : 0;
    facts->topology = (struct text_map){0};
    for (size_t i = 0; topology && i < topology->n_segments; i++)
        text_map_set(&facts->topology, arena, arena_string(arena, topology->segments[i]->key),
                     arena_string(arena, topology->segments[i]->value));
}

void
keeper_facts_drop(struct driver_facts *facts)
{
    facts->is_remembered = false;
    facts->services = facts->expansion = facts->controller = facts->group = 0;
    keeper_facts_drop_node(facts);
}

void
keeper_facts_drop_node(struct driver_facts *facts)
{
    facts->node = 0;
    facts->node_id = NULL;
    facts->max_volumes_per_node = 0;
    facts->topology = (struct text_map){0};
}
