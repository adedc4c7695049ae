/* SPDX-License-Identifier: Apache-2.0 */
/* What a CSI driver can do: see facts_reader.h. */
#include "drivers/facts_reader.h"

#include "message/message_map.h"
#include "proto/csi.rpc.h"

#define SERVICE(name) (UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##name)

struct reader {
    facts_reader_ask *ask;
    void *context;
    struct driver_facts *facts;
};

/* None of the requests has fields. */
static struct error *
ask(const struct reader *reader, bool is_node, const struct method *method, void *reply)
{
    ProtobufCMessage request;
    protobuf_c_message_init(method->input, &request);
    return reader->ask(reader->context, is_node, method, &request, reply);
}

/* A capability with a number beyond the bits belongs to a newer CSI, and is unknown here anyway. */
static uint64_t
bit_of(int type)
{
    return type > 0 && type < 64 ? UINT64_C(1) << type : 0;
}

/* ---- Identity ---- */

static struct error *
read_plugin_info(const struct reader *reader)
{
    struct driver_facts *facts = reader->facts;
    Csi__V1__GetPluginInfoResponse *reply;
    struct error *error = ask(reader, false, CSI_V1_IDENTITY_GET_PLUGIN_INFO, &reply);
    if (error)
        return error;
    facts->plugin_name = arena_string(&facts->arena, reply->name);
    facts->plugin_version = arena_string(&facts->arena, reply->vendor_version);
    return NULL;
}

static struct error *
read_plugin_capabilities(const struct reader *reader)
{
    struct driver_facts *facts = reader->facts;
    Csi__V1__GetPluginCapabilitiesResponse *reply;
    struct error *error = ask(reader, false, CSI_V1_IDENTITY_GET_PLUGIN_CAPABILITIES, &reply);
    if (error)
        return error;
    facts->services = facts->expansion = 0;
    for (size_t i = 0; i < reply->n_capabilities; i++) {
        const Csi__V1__PluginCapability *one = reply->capabilities[i];
        if (one->type_case == CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE)
            facts->services |= bit_of((int)one->service->type);
        else if (one->type_case == CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION)
            facts->expansion |= bit_of((int)one->volume_expansion->type);
    }
    return NULL;
}

/* ---- the other services ---- */

/* The replies of the three services differ only in the names of their types. */
static struct error *
read_rpcs(const struct reader *reader, bool is_node, const struct method *method, uint64_t *bits)
{
    Csi__V1__ControllerGetCapabilitiesResponse *reply;
    struct error *error = ask(reader, is_node, method, &reply);
    if (error)
        return error;
    *bits = 0;
    for (size_t i = 0; i < reply->n_capabilities; i++) {
        const Csi__V1__ControllerServiceCapability *one = reply->capabilities[i];
        if (one->type_case == CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC)
            *bits |= bit_of((int)one->rpc->type);
    }
    return NULL;
}

/*
 * A service may be missing although Identity names it: many drivers run as a controller here and as
 * a node there, and name the services of both.
 */
static struct error *
read_service(const struct reader *reader, uint64_t service, const struct method *method,
             uint64_t *bits)
{
    if (reader->facts->services & service) {
        struct error *error = read_rpcs(reader, false, method, bits);
        if (!error || error->code != CODE_UNIMPLEMENTED)
            return error;
        error_free(error);
    }
    reader->facts->services &= ~service;
    *bits = 0;
    return NULL;
}

static void
take_node_info(struct driver_facts *facts, const Csi__V1__NodeGetInfoResponse *info)
{
    struct arena *arena = &facts->arena;
    const Csi__V1__Topology *topology = info->accessible_topology;
    struct text_map segments = {0};
    facts->node_id = arena_string(arena, info->node_id);
    facts->max_volumes_per_node = info->max_volumes_per_node > 0 ? info->max_volumes_per_node : 0;
    if (topology)
        segments = message_map_read(topology->segments, topology->n_segments, arena);
    facts->topology = text_map_copy(&segments, arena);
}

static void
drop_node(struct driver_facts *facts)
{
    facts->node = 0;
    facts->node_id = NULL;
    facts->max_volumes_per_node = 0;
    facts->topology = (struct text_map){0};
}

static struct error *
read_node(const struct reader *reader)
{
    Csi__V1__NodeGetInfoResponse *info;
    struct error *error =
        read_rpcs(reader, true, CSI_V1_NODE_NODE_GET_CAPABILITIES, &reader->facts->node);
    if (!error)
        error = ask(reader, true, CSI_V1_NODE_NODE_GET_INFO, &info);
    if (!error)
        take_node_info(reader->facts, info);
    if (!error || error->code != CODE_UNIMPLEMENTED)
        return error;
    error_free(error);
    drop_node(reader->facts);
    return NULL;
}

/* ---- all of it ---- */

/* What is remembered is not of this server. */
static void
drop_remembered(struct driver_facts *facts)
{
    facts->is_remembered = false;
    facts->services = facts->expansion = facts->controller = facts->group = 0;
    drop_node(facts);
}

struct error *
facts_reader_run(facts_reader_ask *ask_driver, void *context, struct driver_facts *facts)
{
    const struct reader reader = {ask_driver, context, facts};
    struct error *error = read_plugin_info(&reader);
    if (!error)
        error = read_plugin_capabilities(&reader);
    /* Only our own server refuses to say who it is, because of the metadata. */
    facts->leads_back = error && error->code == CODE_FAILED_PRECONDITION && error->from_peer;
    if (facts->leads_back && facts->is_remembered)
        drop_remembered(facts);
    if (!error)
        error = read_service(&reader, SERVICE(CONTROLLER_SERVICE),
                             CSI_V1_CONTROLLER_CONTROLLER_GET_CAPABILITIES, &facts->controller);
    if (!error)
        error =
            read_service(&reader, SERVICE(GROUP_CONTROLLER_SERVICE),
                         CSI_V1_GROUP_CONTROLLER_GROUP_CONTROLLER_GET_CAPABILITIES, &facts->group);
    facts->is_known |= !error;
    if (!error)
        error = error_wrap(read_node(&reader), "its Node service");
    facts->is_node_known |= !error;
    facts->is_remembered &= error != NULL;
    return error;
}
