/* SPDX-License-Identifier: Apache-2.0 */
/* Routes and ids: see route.h. */
#include "connections/forward/route.h"

#include <string.h>

#include "connections/forward/lost_handles.h"
#include "connections/forward/nodes.h"
#include "connections/request/global_id.h"
#include "connections/request/handles.h"
#include "connections/request/topology.h"

#define LONGEST_HANDLE 1024 /* CSI allows 128; some drivers exceed it */
#define LONGEST_NODE_ID 256

/* ---- finding ---- */

struct search {
    const struct router *router;
    const struct connection_set *set;
    bool is_for_node; /* a call of the Node service, which is about this node */
    bool is_group;    /* its volumes may have moved to one node: router_groups.c finds out */
    struct route *route;
};

static struct error *
check_length(enum id_field field, const char *id)
{
    size_t size = strlen(id), most = field == ID_FIELD_NODE ? LONGEST_NODE_ID : GLOBAL_ID_MAX;
    if (size <= most)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "an id has %zu bytes; at most %zu are allowed", size,
                     most);
}

static struct error *
several_error(const char *id, const struct connection *one, const struct connection *other)
{
    if (strcmp(one->spec->name, other->spec->name) == 0)
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" is on another node than the rest of the request; use ids of one "
                         "node",
                         id);
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"%s\" belongs to another connection than the rest of the request (\"%s\" "
                     "and \"%s\"); use ids of one connection",
                     id, one->spec->name, other->spec->name);
}

/* Volumes of a group that were created on several nodes. */
static bool
may_be_together(const struct search *search, const struct connection *found)
{
    return search->is_group &&
           strcmp(found->spec->name, search->route->connection->spec->name) == 0;
}

/* The home of the handle is not a node of the cluster; but it may have moved to one. */
static void
note_lost(struct search *search, enum id_kind kind, const struct global_id *parts)
{
    struct connection *own = connection_set_find(search->set, parts->connection);
    search->route->own = own && own->spec->driver->speaks_our_ids ? own : NULL;
    search->route->kind = kind;
    search->route->handle = parts->handle;
}

static struct error *
look_at_id(void *context, enum id_field field, char **id)
{
    struct search *search = context;
    struct route *route = search->route;
    struct global_id parts;
    struct error *error = check_length(field, *id);
    if (error)
        return error;
    if (field == ID_FIELD_NODE) {
        route->needs_thread |= !nodes_is_this(search->router, *id);
        return NULL;
    }
    if (!global_id_parse(csi_fields_kind(field), *id, &parts)) {
        if (!route->unknown_id)
            route->unknown_id = *id;
        return NULL;
    }
    struct connection *found = NULL;
    if (search->is_for_node)
        found = connection_set_find(search->set, parts.connection);
    else
        error = connection_set_locate(search->set, parts.connection, parts.handle, &found);
    if (!error && !found)
        error = error_new(CODE_NOT_FOUND, "there is no connection \"%s\" for \"%s\"",
                          parts.connection, *id);
    if (error) {
        note_lost(search, csi_fields_kind(field), &parts);
        return error;
    }
    if (route->connection && route->connection != found && !may_be_together(search, found))
        return several_error(*id, found, route->connection);
    if (!route->handle) {
        route->kind = csi_fields_kind(field);
        route->handle = parts.handle;
        route->connection = found;
    }
    route->needs_thread |= handles_is_short(parts.handle);
    return NULL;
}

bool
route_is_for_node(const ProtobufCMessage *message)
{
    static const char node[] = "csi.v1.Node";
    return strncmp(message->descriptor->name, node, sizeof node - 1) == 0;
}

struct error *
route_find(const struct router *router, const struct connection_set *set,
           const ProtobufCMessage *message, struct route *out)
{
    *out = (struct route){0};
    bool is_group =
        message->descriptor == &csi__v1__create_volume_group_snapshot_request__descriptor;
    struct search search = {router, set, route_is_for_node(message), is_group, out};
    return csi_fields_walk((ProtobufCMessage *)message,
                           &(struct csi_visitor){&search, look_at_id, NULL});
}

/* ---- requests ---- */

struct translation {
    const struct router *router;
    const struct connection *connection;
    const struct text_map *keys;
    struct arena *arena;
    /* Requests. */
    struct call *call;
    bool unpublishes;
    struct handles_row **rows; /* of a deletion; NULL: the request is none */
    /* Answers. */
    const char *inline_id; /* NULL: none */
    bool creates;
};

/* To an orchestrator NOT_FOUND of an unpublication would mean that it is done. */
static struct error *
translate_node_in(const struct translation *t, char **id)
{
    struct error *error = nodes_translate_in(t->router, t->connection, t->arena, id);
    if (error && error->code == CODE_NOT_FOUND && t->unpublishes)
        error->code = CODE_UNAVAILABLE;
    return error;
}

static struct error *
find_rows(const struct translation *t, enum id_kind kind, const char *short_handle,
          const char *handle)
{
    struct store *store = t->router->shared;
    const struct connection_spec *spec = t->connection->spec;
    bool leaves_mark = !lost_handles_can_find(t->connection, kind);
    struct error *error = handles_find_row(store, kind, spec->name, short_handle, handle,
                                           leaves_mark, t->arena, t->rows);
    for (size_t i = 0; !error && i < spec->aliases.count; i++)
        error = handles_find_row(store, kind, spec->aliases.items[i], short_handle, handle,
                                 leaves_mark, t->arena, t->rows);
    return error;
}

/* The driver's handle of an id; collects the rows of a short one that is to be deleted. */
static struct error *
read_handle(const struct translation *t, enum id_kind kind, const char *id,
            const struct global_id *parts, const char **handle)
{
    bool is_short = handles_is_short(parts->handle);
    struct error *error = NULL;
    if (is_short && !t->connection->spec->driver->speaks_our_ids) /* whose ids are never long */
        error = lost_handles_restore(t->router, t->connection, t->call, kind, id, parts);
    if (!error)
        error = handles_read(t->router->shared, id, parts, t->arena, handle);
    if (!error && is_short && t->rows)
        error = find_rows(t, kind, parts->handle, *handle);
    return error;
}

static struct error *
translate_id_in(void *context, enum id_field field, char **id)
{
    const struct translation *t = context;
    enum id_kind kind = csi_fields_kind(field);
    struct global_id parts;
    const char *handle;
    if (field == ID_FIELD_NODE)
        return translate_node_in(t, id);
    /* A foreign id stays: it may be that of an inline volume. */
    if (!global_id_parse(kind, *id, &parts))
        return NULL;
    struct error *error = read_handle(t, kind, *id, &parts, &handle);
    if (!error)
        *id = t->connection->spec->driver->speaks_our_ids ? ids_print(kind, handle, t->arena)
                                                          : (char *)handle;
    return error;
}

static struct error *
translate_topology_in(void *context, ProtobufCMessage *owner)
{
    const struct translation *t = context;
    return topology_translate_in(t->connection, t->keys, owner, t->arena);
}

static bool
is_deletion(const ProtobufCMessageDescriptor *type)
{
    return type == &csi__v1__delete_volume_request__descriptor ||
           type == &csi__v1__delete_snapshot_request__descriptor ||
           type == &csi__v1__delete_volume_group_snapshot_request__descriptor;
}

struct error *
route_translate_in(const struct router *router, const struct connection *connection,
                   const struct text_map *keys, struct call *call, ProtobufCMessage *request,
                   struct handles_row **rows)
{
    const ProtobufCMessageDescriptor *type = request->descriptor;
    struct translation t = {router, connection, keys, call_arena(call), .call = call};
    t.unpublishes = type == &csi__v1__controller_unpublish_volume_request__descriptor;
    t.rows = is_deletion(type) ? rows : NULL;
    *rows = NULL;
    return csi_fields_walk(request,
                           &(struct csi_visitor){&t, translate_id_in, translate_topology_in});
}

/* ---- answers ---- */

static enum handles_state
state_of(const struct translation *t, enum id_field field)
{
    bool is_source = field == ID_FIELD_SOURCE_VOLUME || field == ID_FIELD_SOURCE_SNAPSHOT;
    return is_source ? HANDLES_MAY_BE_GONE : t->creates ? HANDLES_CREATED : HANDLES_EXISTS;
}

static struct error *
translate_id_out(void *context, enum id_field field, char **id)
{
    const struct translation *t = context;
    const struct connection_spec *spec = t->connection->spec;
    const char *handle = *id;
    size_t size = strlen(*id);
    if (field == ID_FIELD_NODE)
        return nodes_translate_out(t->router, t->connection, t->arena, id);
    if (t->inline_id && strcmp(*id, t->inline_id) == 0)
        return NULL;
    if (spec->driver->speaks_our_ids)
        handle = ids_handle(csi_fields_kind(field), *id);
    if (!handle || strlen(handle) > LONGEST_HANDLE)
        return error_new(CODE_INTERNAL,
                         "the driver behind connection \"%s\" returned an invalid id (%zu bytes)",
                         spec->name, size);
    return handles_print_id(t->router->shared, csi_fields_kind(field), spec->name, handle,
                            state_of(t, field), t->arena, id);
}

static struct error *
translate_topology_out(void *context, ProtobufCMessage *owner)
{
    const struct translation *t = context;
    topology_translate_out(t->connection, t->keys, t->router->advertises_csi_1_13, owner, t->arena);
    return NULL;
}

static bool
is_creation(const ProtobufCMessageDescriptor *type)
{
    return type == &csi__v1__create_volume_response__descriptor ||
           type == &csi__v1__create_snapshot_response__descriptor ||
           type == &csi__v1__create_volume_group_snapshot_response__descriptor;
}

struct error *
route_translate_out(const struct router *router, const struct connection *connection,
                    const struct text_map *keys, ProtobufCMessage *reply, const char *inline_id,
                    struct arena *arena)
{
    struct translation t = {router, connection, keys, arena, .inline_id = inline_id};
    t.creates = is_creation(reply->descriptor);
    return csi_fields_walk(reply,
                           &(struct csi_visitor){&t, translate_id_out, translate_topology_out});
}

struct lookahead {
    const struct router *router;
    const struct connection *connection;
    bool can;
};

static struct error *
look_at_answer(void *context, enum id_field field, char **id)
{
    struct lookahead *look = context;
    if (field == ID_FIELD_NODE)
        look->can &= nodes_can_translate_out(look->router, look->connection, *id);
    else
        look->can &= !handles_needs_row(look->connection->spec->name, *id);
    return NULL;
}

bool
route_can_translate_out(const struct router *router, const struct connection *connection,
                        const ProtobufCMessage *reply)
{
    struct lookahead look = {router, connection, true};
    error_free(csi_fields_walk((ProtobufCMessage *)reply,
                               &(struct csi_visitor){&look, look_at_answer, NULL}));
    return look.can;
}
