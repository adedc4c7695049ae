/* SPDX-License-Identifier: Apache-2.0 */
/* Routes and ids: see route.h. */
#include "connections/route.h"

#include <string.h>

#include "connections/global_id.h"
#include "connections/handles.h"
#include "connections/lost_handles.h"
#include "connections/nodes.h"

#define LONGEST_HANDLE 1024 /* CSI allows 128; some drivers do not keep to it */
#define LONGEST_NODE_ID 256

enum id_kind
route_kind_of(enum id_field field)
{
    switch (field) {
    case ID_FIELD_VOLUME:
    case ID_FIELD_SOURCE_VOLUME:
        return ID_VOLUME;
    case ID_FIELD_SNAPSHOT:
    case ID_FIELD_SOURCE_SNAPSHOT:
        return ID_SNAPSHOT;
    case ID_FIELD_GROUP:
    case ID_FIELD_NODE:
        break;
    }
    return ID_GROUP;
}

/* ---- finding ---- */

struct search {
    const struct router *router;
    const struct connection_set *set;
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
    if (!global_id_parse(route_kind_of(field), *id, &parts)) {
        if (!route->unknown_id)
            route->unknown_id = *id;
        return NULL;
    }
    struct connection *found = connection_set_find(search->set, parts.connection);
    if (!found)
        return error_new(CODE_NOT_FOUND, "there is no connection \"%s\", which \"%s\" is of",
                         parts.connection, *id);
    if (route->connection && route->connection != found)
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" is of another connection than the rest of the request: \"%s\" and "
                         "\"%s\" do nothing together",
                         *id, found->spec->name, route->connection->spec->name);
    route->connection = found;
    route->needs_thread |= handles_is_short(parts.handle);
    return NULL;
}

struct error *
route_find(const struct router *router, const struct connection_set *set,
           const ProtobufCMessage *message, struct route *out)
{
    *out = (struct route){0};
    struct search search = {router, set, out};
    return id_fields_walk((ProtobufCMessage *)message, look_at_id, &search);
}

/* ---- translating ---- */

struct translation {
    const struct router *router;
    const struct connection *connection;
    struct arena *arena;
    const char *inline_id; /* on the way out; NULL: none */
    bool takes_away;       /* on the way in: the request is to undo something */
    bool is_made;          /* on the way out: the answer tells of something new */
};

/* What the driver is not asked to undo, for want of its name of the node, is not undone: NOT_FOUND would say that it need not be. */
static struct error *
translate_node_in(const struct translation *t, char **id)
{
    struct error *error = nodes_translate_in(t->router, t->connection, t->arena, id);
    if (error && error->code == CODE_NOT_FOUND && t->takes_away)
        error->code = CODE_UNAVAILABLE;
    return error;
}

static struct error *
translate_id_in(void *context, enum id_field field, char **id)
{
    struct translation *t = context;
    const struct driver_ops *ops = t->connection->spec->driver;
    struct global_id parts;
    const char *handle;
    if (field == ID_FIELD_NODE)
        return translate_node_in(t, id);
    /* An id that is none of ours is passed as it is: it may be that of an inline volume. */
    if (!global_id_parse(route_kind_of(field), *id, &parts))
        return NULL;
    struct error *error = handles_read(t->router->options.shared, *id, &parts, t->arena, &handle);
    if (!error)
        *id = ops->speaks_our_ids ? ids_print(route_kind_of(field), handle, t->arena)
                                  : (char *)handle;
    return error;
}

struct error *
route_translate_in(const struct router *router, const struct connection *connection,
                   ProtobufCMessage *message, struct arena *arena)
{
    bool takes_away =
        message->descriptor == &csi__v1__controller_unpublish_volume_request__descriptor;
    struct translation translation = {router, connection, arena, NULL, takes_away};
    return id_fields_walk(message, translate_id_in, &translation);
}

static struct error *
translate_id_out(void *context, enum id_field field, char **id)
{
    struct translation *t = context;
    const struct connection_spec *spec = t->connection->spec;
    const char *handle = *id;
    size_t size = strlen(*id);
    if (field == ID_FIELD_NODE)
        return nodes_translate_out(t->router, t->connection, t->arena, id);
    if (t->inline_id && strcmp(*id, t->inline_id) == 0)
        return NULL;
    if (spec->driver->speaks_our_ids)
        handle = ids_handle(route_kind_of(field), *id);
    if (!handle || strlen(handle) > LONGEST_HANDLE)
        return error_new(CODE_INTERNAL,
                         "the driver behind connection \"%s\" answers with what is no id (%zu "
                         "bytes)",
                         spec->name, size);
    bool is_source = field == ID_FIELD_SOURCE_VOLUME || field == ID_FIELD_SOURCE_SNAPSHOT;
    enum handles_state state = is_source    ? HANDLES_MAY_BE_GONE
                               : t->is_made ? HANDLES_CREATED
                                            : HANDLES_EXISTS;
    return handles_print_id(t->router->options.shared, route_kind_of(field), spec->name, handle,
                            state, t->arena, id);
}

struct look_out {
    struct translation translation;
    bool can;
};

static struct error *
look_at_answer(void *context, enum id_field field, char **id)
{
    struct look_out *look = context;
    const struct translation *t = &look->translation;
    if (field == ID_FIELD_NODE)
        look->can &= nodes_can_translate_out(t->router, t->connection, *id);
    else
        look->can &= !handles_needs_row(t->connection->spec->name, *id);
    return NULL;
}

bool
route_can_translate_out(const struct router *router, const struct connection *connection,
                        const ProtobufCMessage *message)
{
    struct look_out look = {{router, connection, NULL}, true};
    error_free(id_fields_walk((ProtobufCMessage *)message, look_at_answer, &look));
    return look.can;
}

struct error *
route_translate_out(const struct router *router, const struct connection *connection,
                    ProtobufCMessage *message, const char *inline_id, struct arena *arena)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    struct translation translation = {router, connection, arena, inline_id};
    translation.is_made = type == &csi__v1__create_volume_response__descriptor ||
                          type == &csi__v1__create_snapshot_response__descriptor ||
                          type == &csi__v1__create_volume_group_snapshot_response__descriptor;
    return id_fields_walk(message, translate_id_out, &translation);
}

/* ---- rows of what is deleted ---- */

struct deletion {
    const struct router *router;
    const struct connection *connection;
    struct arena *arena;
    struct handles_row **rows;
};

/* By all names of the connection. */
static struct error *
find_rows_of(const struct deletion *d, enum id_kind kind, const char *short_handle,
             const char *handle)
{
    struct store *store = d->router->options.shared;
    const struct connection_spec *spec = d->connection->spec;
    bool leaves_mark = !lost_handles_can_find(d->connection, kind);
    struct error *error = handles_find_row(store, kind, spec->name, short_handle, handle,
                                           leaves_mark, d->arena, d->rows);
    for (size_t i = 0; !error && i < spec->aliases.count; i++)
        error = handles_find_row(store, kind, spec->aliases.items[i], short_handle, handle,
                                 leaves_mark, d->arena, d->rows);
    return error;
}

static struct error *
find_rows(void *context, enum id_field field, char **id)
{
    const struct deletion *d = context;
    struct global_id parts;
    const char *handle;
    if (field == ID_FIELD_NODE || !global_id_parse(route_kind_of(field), *id, &parts) ||
        !handles_is_short(parts.handle))
        return NULL;
    struct error *error = handles_read(d->router->options.shared, *id, &parts, d->arena, &handle);
    return error ? error : find_rows_of(d, route_kind_of(field), parts.handle, handle);
}

struct error *
route_find_rows(const struct router *router, const struct connection *connection,
                const ProtobufCMessage *message, struct arena *arena, struct handles_row **rows)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    struct deletion deletion = {router, connection, arena, rows};
    *rows = NULL;
    if (type != &csi__v1__delete_volume_request__descriptor &&
        type != &csi__v1__delete_snapshot_request__descriptor &&
        type != &csi__v1__delete_volume_group_snapshot_request__descriptor)
        return NULL;
    return id_fields_walk((ProtobufCMessage *)message, find_rows, &deletion);
}
