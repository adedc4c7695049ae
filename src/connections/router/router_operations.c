/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: skycap.v1.Operations over all connections. The router's own operations are copies
 * from one connection to another; their ids are those of the target volumes. A connection with an
 * engine has the engine's operations, whose ids v:local/HANDLE become v:NAME/HANDLE. Third-party
 * drivers have none.
 */
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "connections/forward/forward.h"
#include "connections/request/global_id.h"
#include "connections/router/merged_list.h"
#include "connections/router/router_internal.h"
#include "csi/checks.h"
#include "csi/operations.h"
#include "message/message_bytes.h"

#define MOST_ENTRIES 1000
#define ASK_EVERY_MS 250

typedef Skycap__V1__Operation operation_message;

/* ---- ids ---- */

static struct error *
no_such_operation(const char *id)
{
    return error_new(CODE_NOT_FOUND, "there is no operation \"%s\"", id);
}

/* The connection of an id, and the engine's id. */
static struct error *
find_connection(const struct connection_set *set, const char *id, struct arena *arena,
                struct connection **connection, char **engines_id)
{
    enum id_kind kind = id[0] == ID_SNAPSHOT ? ID_SNAPSHOT : ID_VOLUME;
    struct global_id parts;
    if (!global_id_parse(kind, id, &parts))
        return no_such_operation(id);
    struct error *error = connection_set_locate(set, parts.connection, parts.handle, connection);
    if (error)
        return error;
    if (!*connection || !(*connection)->spec->driver->speaks_our_ids)
        return no_such_operation(id);
    *engines_id = ids_print(kind, parts.handle, arena);
    return NULL;
}

/* ---- asking ---- */

/* One of the router's own; NULL: there is none. */
static struct error *
find_own(struct call *call, const char *id, operation_record **out)
{
    *out = NULL;
    struct error *error = checks_id("id", id);
    if (!error)
        error = ops_get(router_of(call)->ops, id, call_arena(call), out);
    return error_forgive(error, CODE_NOT_FOUND);
}

/* Forwards the request to the engine of the id; `*id` is its field. */
static struct error *
ask_engine(struct call *call, const char *method, ProtobufCMessage *request, char **id,
           operation_message *reply)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    const char *asked = *id;
    struct connection *connection;
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct error *error = find_connection(set, asked, arena, &connection, id);
    if (error)
        return error;
    error = forward_own(router, set, connection, call, method, request, &reply->base);
    if (!error)
        router_translate_operation(router, connection, arena, reply);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return no_such_operation(asked);
}

static struct error *
get(struct call *call, const Skycap__V1__GetOperationRequest *request, operation_message *reply)
{
    operation_record *own;
    Skycap__V1__GetOperationRequest asked = *request;
    struct error *error = find_own(call, request->id, &own);
    if (error)
        return error;
    if (!own)
        return ask_engine(call, "skycap.v1.Operations/Get", &asked.base, &asked.id, reply);
    operations_fill(reply, own, call_arena(call));
    router_translate_operation(router_of(call), NULL, call_arena(call), reply);
    return NULL;
}

static struct error *
cancel(struct call *call, const Skycap__V1__CancelOperationRequest *request,
       operation_message *reply)
{
    struct ops *ops = router_of(call)->ops;
    operation_record *own;
    Skycap__V1__CancelOperationRequest asked = *request;
    struct error *error = find_own(call, request->id, &own);
    if (error)
        return error;
    if (!own)
        return ask_engine(call, "skycap.v1.Operations/Cancel", &asked.base, &asked.id, reply);
    error = ops_cancel(ops, own->id);
    if (!error)
        error = ops_get(ops, own->id, call_arena(call), &own);
    if (!error)
        operations_fill(reply, own, call_arena(call));
    return error;
}

/* ---- listing ---- */

static bool
has_operations(const struct merged_list *list, struct connection *connection)
{
    (void)list;
    return connection->spec->driver->speaks_our_ids;
}

static struct error *
list_own(const struct merged_list *list, const char *token, size_t most, struct list_page *out)
{
    struct arena *arena = call_arena(list->call);
    struct ops_page page;
    struct error *error =
        ops_list(router_of(list->call)->ops, token[0] ? token : NULL, most, arena, &page);
    if (error)
        return error;
    out->entries = arena_alloc(arena, page.count * sizeof(void *));
    for (; out->count < page.count; out->count++) {
        operation_message *message = arena_alloc(arena, sizeof *message);
        skycap__v1__operation__init(message);
        operations_fill(message, page.records[out->count], arena);
        router_translate_operation(router_of(list->call), NULL, arena, message);
        out->entries[out->count] = message;
    }
    if (page.has_more)
        out->next_token = page.records[page.count - 1]->id;
    return NULL;
}

static struct error *
list_page(const struct merged_list *list, struct connection *connection, const char *token,
          size_t most, struct list_page *out)
{
    if (!connection)
        return list_own(list, token, most, out);
    Skycap__V1__ListOperationsRequest request = SKYCAP__V1__LIST_OPERATIONS_REQUEST__INIT;
    struct error *error = router_ask_for_page(list, connection, &request.base, token, most, out);
    for (size_t i = 0; i < out->count && !error; i++)
        router_translate_operation(router_of(list->call), connection, call_arena(list->call),
                                   out->entries[i]);
    return error;
}

static struct error *
list_operations(struct call *call, const Skycap__V1__ListOperationsRequest *request,
                Skycap__V1__ListOperationsResponse *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct merged_list list = {
        .call = call, .set = set, .has_own = true, .can = has_operations, .ask = list_page};
    return router_run_list(&list, MOST_ENTRIES, &request->base, &reply->base);
}

/* ---- watching ---- */

/* Sends the operation if it has changed since `before`, which becomes its bytes. */
static struct error *
send_if_changed(struct call *call, const operation_message *now, struct buffer *before)
{
    struct arena arena AUTO(arena_clear);
    size_t size;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const uint8_t *bytes = message_bytes_pack(&now->base, &arena, &size);
    if (size == before->size && (!size || memcmp(bytes, before->bytes, size) == 0))
        return NULL;
    buffer_clear(before);
    buffer_append(before, bytes, size);
    return call_send(call, &now->base);
}

/* One question to the other node. It has a call of its own, because there may be very many. */
static struct error *
look_elsewhere(struct call *call, const char *id, struct buffer *before, bool *has_ended)
{
    struct call *question = call_new_part(call, 0);
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    operation_message now = SKYCAP__V1__OPERATION__INIT;
    request.id = (char *)id;
    struct error *error =
        ask_engine(question, "skycap.v1.Operations/Get", &request.base, &request.id, &now);
    if (!error)
        error = send_if_changed(call, &now, before);
    *has_ended = now.state != SKYCAP__V1__OPERATION__STATE__RUNNING;
    call_free_detached(question);
    return error;
}

/* Asks the other node again and again until the operation ends. */
static struct error *
watch_elsewhere(struct call *call, const char *id)
{
    struct buffer before AUTO(buffer_clear) = {0};
    struct error *error = NULL;
    bool has_ended = false;
    while (!error && !has_ended && !call_is_cancelled(call)) {
        error = look_elsewhere(call, id, &before, &has_ended);
        usleep(has_ended ? 0 : ASK_EVERY_MS * 1000);
    }
    return error;
}

/* An operation that is not running is sent once, as it is. */
static struct error *
watch_engines(struct call *call, const char *id)
{
    struct router *router = router_of(call);
    struct connection *connection;
    char *engines_id;
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    operation_message now = SKYCAP__V1__OPERATION__INIT;
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    request.id = (char *)id;
    struct error *error =
        ask_engine(call, "skycap.v1.Operations/Get", &request.base, &request.id, &now);
    if (error)
        return error;
    if (now.state != SKYCAP__V1__OPERATION__STATE__RUNNING)
        return call_send(call, &now.base);
    error = find_connection(set, id, call_arena(call), &connection, &engines_id);
    if (!error && connection->node_address)
        return watch_elsewhere(call, id);
    return error ? error : router_watch_operation(call, connection, operations_read_id(engines_id));
}

static struct error *
watch(struct call *call, const Skycap__V1__WatchOperationsRequest *request)
{
    operation_record *own;
    if (!request->id[0])
        return router_watch_operations(call);
    struct error *error = find_own(call, request->id, &own);
    if (error)
        return error;
    return own ? router_watch_operation(call, NULL, own->id) : watch_engines(call, request->id);
}

const struct skycap_v1_operations router_operations_handlers = {
    .get = {get},
    .list = {list_operations},
    .watch = {watch},
    .cancel = {cancel},
};
