/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver `csi` between two servers of one process: a child whose behaviour the test sets, and a front whose handlers pass calls to the driver, as
 * the router does. Settings are made by hand.
 */
#ifndef UNIT_DRIVER_ENDS_H
#define UNIT_DRIVER_ENDS_H

#include "drivers/driver.h"
#include "rpc_ends.h"

/* ---- settings ---- */

/* A map of texts: pairs of key and text, NULL at the end. */
static inline const struct setting *
make_settings(struct arena *arena, ...)
{
    struct setting *map = arena_zeroed(arena, sizeof *map);
    const struct setting **last = &map->first;
    va_list arguments;
    map->kind = SETTING_MAP;
    map->line = 1;
    va_start(arguments, arena);
    const char *key;
    while ((key = va_arg(arguments, const char *))) {
        struct setting *one = arena_zeroed(arena, sizeof *one);
        *one = (struct setting){.line = 2, .key = key, .text = va_arg(arguments, const char *)};
        *last = one;
        last = &one->next;
    }
    va_end(arguments);
    return map;
}

/* The same map with another part at its front. */
static inline const struct setting *
add_setting(struct arena *arena, const struct setting *map, const char *key,
            const struct setting *value)
{
    struct setting *top = arena_zeroed(arena, sizeof *top);
    struct setting *one = arena_zeroed(arena, sizeof *one);
    *one = *value;
    one->key = key;
    one->line = 3;
    one->next = map->first;
    *top = *map;
    top->first = one;
    return top;
}

/* ---- the child ---- */

struct child {
    struct ends ends;
    atomic_bool hangs;          /* CreateVolume does not answer */
    atomic_bool identity_hangs; /* nor do Probe and GetPluginInfo */
    atomic_bool is_unready;
    atomic_int refusal; /* the code that CreateVolume and Probe answer with; 0: none */
    atomic_int version;
    struct gate entered; /* calls that hang */
    struct gate may_go;
    atomic_int reads; /* of GetPluginInfo */
    atomic_int probes;
    char via[256]; /* what the last CreateVolume brought */
};

static inline void
child_hang(struct child *child)
{
    gate_pass(&child->entered);
    gate_wait(&child->may_go, 1);
}

static inline struct error *
child_info(struct call *call, const Csi__V1__GetPluginInfoRequest *request,
           Csi__V1__GetPluginInfoResponse *reply)
{
    struct child *child = call_context(call);
    (void)request;
    if (atomic_load(&child->identity_hangs))
        child_hang(child);
    atomic_fetch_add(&child->reads, 1);
    reply->name = arena_string(call_arena(call), "child.example.com");
    reply->vendor_version = arena_print(call_arena(call), "1.%d", atomic_load(&child->version));
    return NULL;
}

static inline struct error *
child_capabilities(struct call *call, const Csi__V1__GetPluginCapabilitiesRequest *request,
                   Csi__V1__GetPluginCapabilitiesResponse *reply)
{
    static Csi__V1__PluginCapability__Service service = CSI__V1__PLUGIN_CAPABILITY__SERVICE__INIT;
    static Csi__V1__PluginCapability__VolumeExpansion online =
        CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__INIT;
    static Csi__V1__PluginCapability both[2] = {CSI__V1__PLUGIN_CAPABILITY__INIT,
                                                CSI__V1__PLUGIN_CAPABILITY__INIT};
    static Csi__V1__PluginCapability *list[2] = {&both[0], &both[1]};
    (void)call;
    (void)request;
    service.type = CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE;
    online.type = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE;
    both[0].type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
    both[0].service = &service;
    both[1].type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
    both[1].volume_expansion = &online;
    reply->capabilities = list;
    reply->n_capabilities = 2;
    return NULL;
}

static inline struct error *
child_refuse(const struct child *child)
{
    int code = atomic_load(&child->refusal);
    return code ? error_new((enum code)code, "the child says no") : NULL;
}

static inline struct error *
child_probe(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    struct child *child = call_context(call);
    (void)request;
    atomic_fetch_add(&child->probes, 1);
    if (atomic_load(&child->identity_hangs))
        child_hang(child);
    reply->ready = arena_alloc(call_arena(call), sizeof *reply->ready);
    google__protobuf__bool_value__init(reply->ready);
    reply->ready->value = !atomic_load(&child->is_unready);
    return child_refuse(child);
}

static inline struct error *
child_controller(struct call *call, const Csi__V1__ControllerGetCapabilitiesRequest *request,
                 Csi__V1__ControllerGetCapabilitiesResponse *reply)
{
    static Csi__V1__ControllerServiceCapability__RPC rpc =
        CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__INIT;
    static Csi__V1__ControllerServiceCapability one = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__INIT;
    static Csi__V1__ControllerServiceCapability *list = &one;
    (void)call;
    (void)request;
    rpc.type = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_VOLUME;
    one.type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
    one.rpc = &rpc;
    reply->capabilities = &list;
    reply->n_capabilities = 1;
    return NULL;
}

static inline struct error *
child_create(struct call *call, const Csi__V1__CreateVolumeRequest *request,
             Csi__V1__CreateVolumeResponse *reply)
{
    struct child *child = call_context(call);
    char *via = child->via;
    const struct metadata *metadata = call_metadata(call);
    if (atomic_load(&child->hangs)) {
        child_hang(child);
        return NULL;
    }
    via[0] = 0;
    for (const struct metadata_entry *one = metadata->first; one; one = one->next) {
        size_t used = strlen(via);
        if (!strcmp(one->key, DRIVER_VIA))
            snprintf(via + used, sizeof child->via - used, "%s ", one->value);
    }
    reply->volume = arena_alloc(call_arena(call), sizeof *reply->volume);
    csi__v1__volume__init(reply->volume);
    reply->volume->volume_id = arena_print(call_arena(call), "id-of-%s", request->name);
    return child_refuse(child);
}

static inline struct error *
child_delete(struct call *call, const Csi__V1__DeleteVolumeRequest *request,
             Csi__V1__DeleteVolumeResponse *reply)
{
    struct child *child = call_context(call);
    (void)request;
    (void)reply;
    if (atomic_load(&child->hangs))
        child_hang(child);
    return child_refuse(child);
}

static inline struct error *
child_node(struct call *call, const Csi__V1__NodeGetCapabilitiesRequest *request,
           Csi__V1__NodeGetCapabilitiesResponse *reply)
{
    static Csi__V1__NodeServiceCapability__RPC rpc = CSI__V1__NODE_SERVICE_CAPABILITY__RPC__INIT;
    static Csi__V1__NodeServiceCapability one = CSI__V1__NODE_SERVICE_CAPABILITY__INIT;
    static Csi__V1__NodeServiceCapability *list = &one;
    (void)call;
    (void)request;
    rpc.type = CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME;
    one.type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
    one.rpc = &rpc;
    reply->capabilities = &list;
    reply->n_capabilities = 1;
    return NULL;
}

static inline struct error *
child_node_info(struct call *call, const Csi__V1__NodeGetInfoRequest *request,
                Csi__V1__NodeGetInfoResponse *reply)
{
    struct arena *arena = call_arena(call);
    (void)request;
    reply->node_id = arena_string(arena, "child-node");
    reply->max_volumes_per_node = 12;
    reply->accessible_topology = arena_alloc(arena, sizeof *reply->accessible_topology);
    csi__v1__topology__init(reply->accessible_topology);
    Csi__V1__Topology__SegmentsEntry *entry = arena_alloc(arena, sizeof *entry);
    csi__v1__topology__segments_entry__init(entry);
    entry->key = arena_string(arena, "example.com/rack");
    entry->value = arena_string(arena, "r1");
    reply->accessible_topology->segments = arena_alloc(arena, sizeof entry);
    reply->accessible_topology->segments[0] = entry;
    reply->accessible_topology->n_segments = 1;
    return NULL;
}

/* A message every time the gate is passed once more; three, then the end. */
static inline struct error *
child_allocated(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    struct error *error = NULL;
    for (int i = 0; i < 3 && !error; i++) {
        Csi__V1__GetMetadataAllocatedResponse message =
            CSI__V1__GET_METADATA_ALLOCATED_RESPONSE__INIT;
        message.volume_capacity_bytes = request->starting_offset + i;
        error = call_send(call, &message.base);
    }
    return error ? error : child_refuse(call_context(call));
}

static const struct csi_v1_identity child_identity_handlers = {
    {child_info}, {child_capabilities}, {child_probe}};
static const struct csi_v1_controller child_controller_handlers = {
    .create_volume = {child_create},
    .delete_volume = {child_delete},
    .controller_get_capabilities = {child_controller},
};
static const struct csi_v1_node child_node_handlers = {
    .node_get_capabilities = {child_node},
    .node_get_info = {child_node_info},
};
static const struct csi_v1_snapshot_metadata child_metadata_handlers = {
    .get_metadata_allocated = {child_allocated},
};

/* Which services a child has: it is a controller, a node, or both. */
enum child_kind { CHILD_CONTROLLER = 1, CHILD_NODE = 2, CHILD_BOTH = 3 };

static inline void
child_serve(struct child *child, enum child_kind kind)
{
    struct server *server = server_new(child->ends.runtime, &(struct server_options){0});
    server_add_service(server, &csi_v1_identity_service, &child_identity_handlers, child);
    if (kind & CHILD_CONTROLLER) {
        server_add_service(server, &csi_v1_controller_service, &child_controller_handlers, child);
        server_add_service(server, &csi_v1_snapshot_metadata_service, &child_metadata_handlers,
                           child);
    }
    if (kind & CHILD_NODE)
        server_add_service(server, &csi_v1_node_service, &child_node_handlers, child);
    succeed(server_listen(server, child->ends.address, NULL));
    child->ends.server = server;
}

/* In a process of its own, as far as the runtime goes. */
static inline void
child_open(struct child *child, enum child_kind kind)
{
    *child = (struct child){.entered = GATE_INIT, .may_go = GATE_INIT};
    ends_choose_address(child->ends.address);
    ends_open_runtime(&child->ends, (struct runtime_options){0});
    child_serve(child, kind);
}

static inline void
child_close(struct child *child)
{
    gate_pass(&child->may_go);
    server_free(child->ends.server);
    runtime_close(child->ends.runtime);
}

/* ---- the front ---- */

struct front {
    struct ends ends; /* its channel is the user's */
    struct driver *driver;
    struct arena arena; /* of settings */
    atomic_int relayed; /* answers that `front_finish` saw */
};

static inline struct error *
front_create(struct call *call, const Csi__V1__CreateVolumeRequest *request,
             Csi__V1__CreateVolumeResponse *reply)
{
    struct front *front = call_context(call);
    return front->driver->ops->call(front->driver, call, CSI_V1_CONTROLLER_CREATE_VOLUME,
                                    &request->base, &reply->base);
}

/* Tells what it saw by adding to the message. */
static inline struct error *
front_finish(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct front *front = context;
    (void)call;
    CHECK(!reply != !error);
    atomic_fetch_add(&front->relayed, 1);
    return error_wrap(error, "seen");
}

static inline struct error *
front_delete(struct call *call, const Csi__V1__DeleteVolumeRequest *request,
             Csi__V1__DeleteVolumeResponse *reply)
{
    struct front *front = call_context(call);
    (void)reply;
    return front->driver->ops->relay(front->driver, call, CSI_V1_CONTROLLER_DELETE_VOLUME,
                                     &request->base, front_finish, front);
}

static inline struct error *
front_node_info(struct call *call, const Csi__V1__NodeGetInfoRequest *request,
                Csi__V1__NodeGetInfoResponse *reply)
{
    struct front *front = call_context(call);
    return front->driver->ops->call(front->driver, call, CSI_V1_NODE_NODE_GET_INFO, &request->base,
                                    &reply->base);
}

static inline struct error *
front_allocated(struct call *call, const Csi__V1__GetMetadataAllocatedRequest *request)
{
    struct front *front = call_context(call);
    return front->driver->ops->stream(
        front->driver, call, CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED, &request->base);
}

static const struct csi_v1_controller front_controller_handlers = {
    .create_volume = {front_create},
    .delete_volume = {front_delete, .on_loop = true},
};
static const struct csi_v1_node front_node_handlers = {.node_get_info = {front_node_info}};
static const struct csi_v1_snapshot_metadata front_metadata_handlers = {
    .get_metadata_allocated = {front_allocated}};

struct front_setup {
    const struct setting *settings;
    int64_t max_calls;   /* 0: 64 */
    uint32_t timeout_ms; /* 0: 5 s */
};

static inline void
front_open_driver(struct front *front, const struct front_setup *setup)
{
    struct driver_options options = {
        .connection = "slow",
        .settings = setup->settings,
        .data_directory = "/nonexistent",
        .node_id = "here",
        .instance = "process-1",
        .max_calls = setup->max_calls ? setup->max_calls : 64,
        .timeout_ms = setup->timeout_ms ? setup->timeout_ms : 5000,
        .runtime = front->ends.runtime,
        .log = &front->ends.log,
    };
    succeed(driver_open(driver_find("csi"), &options, &front->driver));
}

/* The settings are made in its arena, so it is prepared first. */
static inline void
front_prepare(struct front *front)
{
    *front = (struct front){0};
    arena_init(&front->arena, NULL, 0, SIZE_MAX);
    ends_choose_address(front->ends.address);
    ends_open_runtime(&front->ends, (struct runtime_options){0});
}

static inline void
front_open(struct front *front, const struct front_setup *setup)
{
    struct ends *ends = &front->ends;
    front_open_driver(front, setup);
    ends->server = server_new(ends->runtime, &(struct server_options){0});
    server_add_service(ends->server, &csi_v1_controller_service, &front_controller_handlers, front);
    server_add_service(ends->server, &csi_v1_node_service, &front_node_handlers, front);
    server_add_service(ends->server, &csi_v1_snapshot_metadata_service, &front_metadata_handlers,
                       front);
    succeed(server_listen(ends->server, ends->address, NULL));
    succeed(
        channel_open(ends->runtime, ends->address, &(struct channel_options){0}, &ends->channel));
}

static inline void
front_close(struct front *front)
{
    channel_close(front->ends.channel);
    server_free(front->ends.server);
    driver_release(front->driver);
    runtime_close(front->ends.runtime);
    arena_clear(&front->arena);
}

/* CreateVolume of that name through the front; the volume's id goes into `id`, which may be NULL. */
static inline struct error *
create(struct front *front, const char *name, const struct call_options *options, char id[64])
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse *reply;
    request.name = (char *)name;
    struct error *error = channel_call(front->ends.channel, CSI_V1_CONTROLLER_CREATE_VOLUME,
                                       &request.base, options, &arena, &reply);
    if (!error && id)
        snprintf(id, 64, "%s", reply->volume ? reply->volume->volume_id : "");
    return error;
}

/* DeleteVolume through the front, by relay. */
static inline struct error *
remove_volume(struct front *front, const struct call_options *options)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse *reply;
    return channel_call(front->ends.channel, CSI_V1_CONTROLLER_DELETE_VOLUME, &request.base,
                        options, &arena, &reply);
}

/* ---- waiting ---- */

static inline bool
facts_say(struct driver *driver, bool is_ready, const char *version)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(driver);
    return facts->is_ready == is_ready &&
           (!version || (facts->plugin_version && !strcmp(facts->plugin_version, version)));
}

static inline bool
trouble_has(struct driver *driver, const char *part)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(driver);
    return facts->trouble && strstr(facts->trouble, part);
}

/* False: it did not come to that in time. */
static inline bool
wait_for_trouble(struct driver *driver, const char *part)
{
    uint64_t start = timers_now();
    while (!trouble_has(driver, part) && ms_since(start) < PATIENCE_MS)
        sleep_ms(2);
    return trouble_has(driver, part);
}

/* False: it did not come to that in time. */
static inline bool
wait_for_facts(struct driver *driver, bool is_ready, const char *version)
{
    uint64_t start = timers_now();
    while (!facts_say(driver, is_ready, version)) {
        if (ms_since(start) > PATIENCE_MS)
            return false;
        sleep_ms(2);
    }
    return true;
}

#endif
