/* SPDX-License-Identifier: Apache-2.0 */
/* A registry behind a server, a channel to it, and short ways to ask it. */
#ifndef UNIT_REGISTRY_ENDS_H
#define UNIT_REGISTRY_ENDS_H

#include "message/message_map.h"
#include "proto/oim.rpc.h"
#include "proto/registry.rpc.h"
#include "registry/registry.h"
#include "rpc_ends.h"

struct office {
    struct log log;
    struct runtime *runtime;
    struct store *store;
    struct registry *registry;
    struct server *server;
    struct channel *channel;
    struct arena arena; /* of the answers, until it is closed */
    char address[96];
};

/* `store` is the office's from now on. */
static inline void
office_open_with(struct office *office, struct store *store, struct registry_options options)
{
    static const char *const nobody[] = {NULL};
    *office = (struct office){.log = {.level = LOG_ERROR, .fd = STDERR_FILENO}, .store = store};
    arena_init(&office->arena, NULL, 0, SIZE_MAX);
    ends_choose_address(office->address);
    succeed(runtime_open(&(struct runtime_options){.log = &office->log}, &office->runtime));
    options.store = store;
    options.runtime = office->runtime;
    options.log = &office->log;
    if (!options.readers)
        options.readers = nobody;
    succeed(registry_open(&options, &office->registry));
    office->server = server_new(office->runtime, &(struct server_options){0});
    registry_add(office->registry, office->server);
    succeed(server_listen(office->server, office->address, NULL));
    succeed(channel_open(office->runtime, office->address,
                         &(struct channel_options){.max_message_bytes = 64 << 20},
                         &office->channel));
}

static inline void
office_open(struct office *office)
{
    struct store *store;
    succeed(store_open("memory:", NULL, &store));
    office_open_with(office, store, (struct registry_options){0});
}

static inline void
office_close(struct office *office)
{
    channel_close(office->channel);
    registry_stop(office->registry);
    server_free(office->server);
    registry_close(office->registry);
    runtime_close(office->runtime);
    store_close(office->store);
    arena_clear(&office->arena);
}

/* ---- asking ---- */

static inline struct error *
ask(struct office *office, const struct method *method, const ProtobufCMessage *request,
    void *reply)
{
    return channel_call(office->channel, method, request,
                        &(struct call_options){.timeout_ns = PATIENCE_MS * MS}, &office->arena,
                        reply);
}

static inline struct error *
register_controller(struct office *office, const char *id, const char *address)
{
    Oim__V0__RegisterControllerRequest request = OIM__V0__REGISTER_CONTROLLER_REQUEST__INIT;
    Oim__V0__RegisterControllerReply *reply;
    request.controller_id = (char *)id;
    request.address = (char *)address;
    return ask(office, OIM_V0_REGISTRY_REGISTER_CONTROLLER, &request.base, &reply);
}

static inline struct error *
set_value(struct office *office, const char *path, const char *text)
{
    Oim__V0__Value value = OIM__V0__VALUE__INIT;
    Oim__V0__SetValueRequest request = OIM__V0__SET_VALUE_REQUEST__INIT;
    Oim__V0__SetValueReply *reply;
    value.path = (char *)path;
    value.value = (char *)text;
    request.value = &value;
    return ask(office, OIM_V0_REGISTRY_SET_VALUE, &request.base, &reply);
}

static inline struct error *
announce(struct office *office, const char *id, const char *address, int64_t ms,
         Skycap__V1__AnnounceReply **reply)
{
    Google__Protobuf__Duration time_to_live = GOOGLE__PROTOBUF__DURATION__INIT;
    Skycap__V1__AnnounceRequest request = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    time_to_live.seconds = ms / 1000;
    time_to_live.nanos = (int32_t)(ms % 1000) * 1000000;
    request.controller_id = (char *)id;
    request.address = (char *)address;
    request.time_to_live = &time_to_live;
    return ask(office, SKYCAP_V1_REGISTRY_ANNOUNCE, &request.base, reply);
}

/* `pairs`: key, value, key, value, then NULL. */
static inline struct error *
announce_node(struct office *office, const char *id, const char *address, int64_t ms,
              const char *const *pairs)
{
    Google__Protobuf__Duration time_to_live = GOOGLE__PROTOBUF__DURATION__INIT;
    Skycap__V1__AnnounceRequest request = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    Skycap__V1__AnnounceReply *reply;
    struct text_map attributes = {0};
    for (; pairs && pairs[0]; pairs += 2)
        text_map_set(&attributes, &office->arena, pairs[0], pairs[1]);
    time_to_live.seconds = ms / 1000;
    time_to_live.nanos = (int32_t)(ms % 1000) * 1000000;
    request.node_id = (char *)id;
    request.address = (char *)address;
    request.time_to_live = &time_to_live;
    message_map_write(&attributes, &office->arena,
                      &skycap__v1__announce_request__attributes_entry__descriptor,
                      &request.attributes, &request.n_attributes);
    return ask(office, SKYCAP_V1_REGISTRY_ANNOUNCE, &request.base, &reply);
}

/* " key=value" of each, in the order of the keys. */
static inline const char *
attributes_of(struct office *office, const Skycap__V1__RegistryEntry *entry)
{
    const char *text = "";
    struct text_map map = message_map_read(entry->attributes, entry->n_attributes, &office->arena);
    for (size_t i = 0; i < map.count; i++)
        text = arena_print(&office->arena, "%s %s=%s", text, map.pairs[i].key, map.pairs[i].value);
    return text;
}

/* "path=value path=value", in the order in which they came; the name of the code if there was an error. */
static inline const char *
values_of(struct office *office, const char *path)
{
    Oim__V0__GetValuesRequest request = OIM__V0__GET_VALUES_REQUEST__INIT;
    Oim__V0__GetValuesReply *reply;
    request.path = (char *)path;
    struct error *error = ask(office, OIM_V0_REGISTRY_GET_VALUES, &request.base, &reply);
    if (error)
        return error_code_name(take_code(error));
    const char *text = "";
    for (size_t i = 0; i < reply->n_values; i++)
        text = arena_print(&office->arena, "%s%s%s=%s", text, i ? " " : "", reply->values[i]->path,
                           reply->values[i]->value);
    return text;
}

static inline const char *
controllers_of(struct office *office)
{
    Oim__V0__GetControllerRequest request = OIM__V0__GET_CONTROLLER_REQUEST__INIT;
    Oim__V0__GetControllerReply *reply;
    struct error *error = ask(office, OIM_V0_REGISTRY_GET_CONTROLLERS, &request.base, &reply);
    if (error)
        return error_code_name(take_code(error));
    const char *text = "";
    for (size_t i = 0; i < reply->n_entries; i++)
        text = arena_print(&office->arena, "%s%s%s=%s", text, i ? " " : "",
                           reply->entries[i]->controller_id, reply->entries[i]->address);
    return text;
}

/* ---- calls that are passed on ---- */

/* A call with so many headers "controllerid", of any method that the registry does not have. */
static inline struct error *
probe_controllers(struct office *office, const char *const *ids, size_t count)
{
    struct metadata metadata = {0};
    for (size_t i = 0; i < count; i++)
        succeed(metadata_add(&metadata, &office->arena, "controllerid", ids[i], strlen(ids[i])));
    return probe(office->channel,
                 &(struct call_options){.timeout_ns = PATIENCE_MS * MS, .metadata = &metadata});
}

static inline struct error *
probe_controller(struct office *office, const char *id)
{
    return probe_controllers(office, &id, 1);
}

#endif
