/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: skycap.v1.Connections, the state of each connection. Options and parameters may be
 * secret and are not reported.
 */
#include "connections/router/router_internal.h"
#include "message/message_map.h"

typedef Skycap__V1__ConnectionInfo connection_info;

#define STATE(name) SKYCAP__V1__CONNECTION_INFO__STATE__##name
#define MS_PER_SECOND 1000
#define BITS 64

static Google__Protobuf__Timestamp *
time_message(uint64_t ms, struct arena *arena)
{
    if (!ms)
        return NULL;
    Google__Protobuf__Timestamp *time = arena_alloc(arena, sizeof *time);
    google__protobuf__timestamp__init(time);
    time->seconds = (int64_t)(ms / MS_PER_SECOND);
    time->nanos = (int32_t)(ms % MS_PER_SECOND * 1000000);
    return time;
}

/* The connections may be gone when the answer is sent, so all texts are copied. */
static char *
copy_text(const char *text, struct arena *arena)
{
    return text ? arena_string(arena, text) : "";
}

/* ---- its file ---- */

static void
tell_labels(const struct connection_spec *spec, struct arena *arena, connection_info *info)
{
    struct text_map labels = text_map_copy(&spec->labels, arena);
    message_map_write(&labels, arena, &skycap__v1__connection_info__labels_entry__descriptor,
                      &info->labels, &info->n_labels);
    info->aliases = arena_alloc(arena, spec->aliases.count * sizeof(char *));
    for (size_t i = 0; i < spec->aliases.count; i++)
        info->aliases[info->n_aliases++] = copy_text(spec->aliases.items[i], arena);
}

/* An option that is a text, or the first of a list; "": there is none. */
static char *
option_text(const struct connection_spec *spec, const char *key, struct arena *arena)
{
    const struct setting *setting = settings_find(spec->options, key);
    if (setting && setting->kind == SETTING_LIST)
        setting = setting->first;
    return copy_text(setting && setting->kind == SETTING_TEXT ? setting->text : NULL, arena);
}

static void
tell_file(const struct connection *connection, struct arena *arena, connection_info *info)
{
    const struct connection_spec *spec = connection->spec;
    info->driver = (char *)spec->driver->name;
    info->priority = spec->priority;
    tell_labels(spec, arena, info);
    info->endpoint = option_text(spec, "endpoint", arena);
    info->node_endpoint = option_text(spec, "node-endpoint", arena);
    info->program = option_text(spec, "command", arena);
    info->loaded = time_message(connection->loaded_ms, arena);
}

/* ---- its driver ---- */

static char **
names_of_bits(uint64_t bits, const ProtobufCEnumDescriptor *type, struct arena *arena,
              size_t *count)
{
    char **names = arena_alloc(arena, BITS * sizeof *names);
    for (int bit = 0; bit < BITS; bit++) {
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, bit);
        if (bits >> bit & 1)
            names[(*count)++] = value
                                    ? (char *)value->name
                                    : arena_print(arena, "%d", bit); /* from a newer CSI version */
    }
    return names;
}

static void
tell_capabilities(const struct connection *connection, struct arena *arena, connection_info *info)
{
    info->services = names_of_bits(connection_services(connection),
                                   &csi__v1__plugin_capability__service__type__descriptor, arena,
                                   &info->n_services);
    info->controller_capabilities =
        names_of_bits(connection_controller_capabilities(connection),
                      &csi__v1__controller_service_capability__rpc__type__descriptor, arena,
                      &info->n_controller_capabilities);
    info->node_capabilities =
        names_of_bits(connection_node_capabilities(connection),
                      &csi__v1__node_service_capability__rpc__type__descriptor, arena,
                      &info->n_node_capabilities);
    info->group_capabilities =
        names_of_bits(connection_group_capabilities(connection),
                      &csi__v1__group_controller_service_capability__rpc__type__descriptor, arena,
                      &info->n_group_capabilities);
}

static void
tell_driver(const struct connection *connection, struct arena *arena, connection_info *info)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    info->state = facts->is_ready   ? STATE(READY)
                  : facts->is_known ? STATE(DOWN)
                                    : STATE(NOT_REACHED_YET);
    info->trouble = facts->is_ready ? "" : copy_text(facts->trouble, arena);
    info->since = time_message(facts->since_ms, arena);
    info->plugin_name = copy_text(facts->plugin_name, arena);
    info->plugin_version = copy_text(facts->plugin_version, arena);
    info->node_id = copy_text(facts->node_id, arena);
    tell_capabilities(connection, arena, info);
}

static void
tell_calls(const struct connection_counters *counters, connection_info *info)
{
    info->calls = atomic_load(&counters->calls);
    info->failures = atomic_load(&counters->failures);
    if (info->calls)
        info->mean_microseconds = atomic_load(&counters->microseconds) / info->calls;
}

/* ---- all of them ---- */

static connection_info *
make_info(const struct connection_set *set, const struct connection_slot *slot, struct arena *arena)
{
    const struct connection *connection = slot->connection;
    connection_info *info = arena_alloc(arena, sizeof *info);
    skycap__v1__connection_info__init(info);
    info->name = copy_text(slot->name, arena);
    info->file_trouble = copy_text(slot->trouble, arena);
    info->state = STATE(NO_GOOD_FILE);
    if (!connection)
        return info;
    info->is_default = connection == connection_set_default(set);
    tell_file(connection, arena, info);
    tell_driver(connection, arena, info);
    tell_calls(connection->counters, info);
    return info;
}

static struct error *
list(struct call *call, const Skycap__V1__ListConnectionsRequest *request,
     Skycap__V1__ListConnectionsResponse *reply)
{
    (void)request;
    struct arena *arena = call_arena(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    reply->connections = arena_alloc(arena, set->count * sizeof(void *));
    for (size_t i = 0; i < set->count; i++)
        reply->connections[reply->n_connections++] = make_info(set, &set->slots[i], arena);
    return NULL;
}

static struct error *
reload(struct call *call, const Skycap__V1__ReloadConnectionsRequest *request,
       Skycap__V1__ListConnectionsResponse *reply)
{
    (void)request;
    struct error *error = connections_reload(router_of(call)->connections);
    return error ? error : list(call, NULL, reply);
}

static struct error *
forget(struct call *call, const Skycap__V1__ForgetConnectionRequest *request,
       Skycap__V1__ListConnectionsResponse *reply)
{
    struct error *error = connections_forget(router_of(call)->connections, request->name);
    return error ? error : list(call, NULL, reply);
}

const struct skycap_v1_connections router_connections_handlers = {
    .list = {list},
    .reload = {reload},
    .forget = {forget},
};
