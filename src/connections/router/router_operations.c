/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: skycap.v1.Operations over all connections. The router has operations of its own,
 * copies from one connection to another, whose ids are those of the volumes that they make; a
 * connection with an engine of its own has those of the engine, whose ids v:local/HANDLE are told
 * as v:NAME/HANDLE. A third-party driver has none.
 *
 * Who watches all of them has one thread, which holds a watch on each source and waits for one
 * after the other, a little while each. A thread per source would tell changes at once instead of
 * within a quarter of a second, which nobody needs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "connections/forward/forward.h"
#include "connections/request/global_id.h"
#include "connections/router/merged_list.h"
#include "connections/router/router_internal.h"
#include "csi/checks.h"
#include "csi/operations.h"

#define MOST_ENTRIES 1000
#define LOOK_MS 1000     /* how often who watches one operation looks whether its client has gone */
#define ROUND_MS 250     /* in which who watches all has looked at every source */
#define MOST_AT_ONCE 100 /* changes of one source, before the next has its turn */

typedef Skycap__V1__Operation operation_message;

/* ---- ids ---- */

static struct error *
no_such_operation(const char *id)
{
    return error_new(CODE_NOT_FOUND, "there is no operation \"%s\"", id);
}

static void
tell_id(const struct connection *connection, struct arena *arena, char **id)
{
    static const enum id_kind kinds[] = {ID_VOLUME, ID_SNAPSHOT};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *handle = ids_handle(kinds[i], *id);
        if (!handle)
            continue;
        *id = global_id_print(kinds[i], connection->spec->name, handle, arena);
        return;
    }
}

/* As the orchestrator knows it. NULL: it is the router's own, and known by that name already. */
static void
translate_out(const struct connection *connection, struct arena *arena, operation_message *message)
{
    if (!connection)
        return;
    tell_id(connection, arena, &message->id);
    tell_id(connection, arena, &message->subject);
}

/* The connection of an id, and the id as its engine knows it. */
static struct error *
find_connection(const struct connection_set *set, const char *id, struct arena *arena,
                struct connection **connection, char **engines_id)
{
    enum id_kind kind = id[0] == ID_SNAPSHOT ? ID_SNAPSHOT : ID_VOLUME;
    struct global_id parts;
    if (!global_id_parse(kind, id, &parts))
        return no_such_operation(id);
    *connection = connection_set_find(set, parts.connection);
    if (!*connection || !(*connection)->spec->driver->operations)
        return no_such_operation(id);
    *engines_id = ids_print(kind, parts.handle, arena);
    return NULL;
}

/* ---- asking ---- */

/* Of the router's own; NULL without an error: there is none. */
static struct error *
find_own(struct call *call, const char *id, operation_record **out)
{
    *out = NULL;
    struct error *error = checks_id("id", id);
    if (!error)
        error = ops_get(router_of(call)->ops, id, call_arena(call), out);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        error = NULL;
    }
    return error;
}

/* Passes the request, whose id stands at `*id`, to the engine that it is of. */
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
        translate_out(connection, arena, reply);
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
    return connection->spec->driver->operations != NULL;
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
    Skycap__V1__ListOperationsResponse reply = SKYCAP__V1__LIST_OPERATIONS_RESPONSE__INIT;
    request.starting_token = (char *)token;
    request.max_entries = (int32_t)most;
    struct error *error = forward_own(router_of(list->call), list->set, connection, list->call,
                                      "skycap.v1.Operations/List", &request.base, &reply.base);
    if (error)
        return error;
    for (size_t i = 0; i < reply.n_operations; i++)
        translate_out(connection, call_arena(list->call), reply.operations[i]);
    *out = (struct list_page){(void **)reply.operations, reply.n_operations, reply.next_token};
    return NULL;
}

static struct error *
list_operations(struct call *call, const Skycap__V1__ListOperationsRequest *request,
                Skycap__V1__ListOperationsResponse *reply)
{
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct merged_list list = {.call = call,
                               .log = router->log,
                               .set = set,
                               .has_own = true,
                               .can = has_operations,
                               .ask = list_page};
    struct list_page page;
    struct error *error =
        merged_list_run(&list, request->max_entries, MOST_ENTRIES, request->starting_token, &page);
    if (error)
        return error;
    reply->operations = (operation_message **)page.entries;
    reply->n_operations = page.count;
    reply->next_token = page.next_token;
    return NULL;
}

/* ---- watching ---- */

/* Operations that are watched. */
struct source {
    struct connection *connection; /* a reference; NULL: the router's own */
    struct ops_watch *watch;
};

/* `id` as the engine's room knows it; NULL: all. */
static struct error *
source_open(struct router *router, struct connection *connection, const char *id,
            struct source *out)
{
    struct ops *ops =
        connection ? connection->spec->driver->operations(connection->driver) : router->ops;
    *out = (struct source){0};
    struct error *error = ops_watch_open(ops, id, &out->watch);
    if (!error && connection)
        out->connection = connection_share(connection);
    return error;
}

/* Its watch first: with the connection the engine may go. */
static void
source_close(struct source *source)
{
    ops_watch_close(source->watch);
    connection_release(source->connection);
    *source = (struct source){0};
}

static struct error *
send(struct call *call, const struct source *source, const operation_record *record,
     struct arena *arena)
{
    operation_message message = SKYCAP__V1__OPERATION__INIT;
    operations_fill(&message, record, arena);
    translate_out(source->connection, arena, &message);
    return call_send(call, &message.base);
}

/* Tells the next change; there may be none for so long. */
static struct error *
pass_on_change(struct call *call, const struct source *source, uint32_t timeout_ms,
               bool *has_changed, bool *has_ended)
{
    struct arena arena AUTO(arena_clear);
    operation_record *record;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = ops_watch_next(source->watch, timeout_ms, &arena, &record);
    *has_changed = !error;
    if (error && error->code == CODE_DEADLINE_EXCEEDED) {
        error_free(error);
        return NULL;
    }
    if (error)
        return error;
    *has_ended = record->state != OPERATION_STATE(RUNNING);
    return send(call, source, record, &arena);
}

static struct error *
follow(struct call *call, struct connection *connection, const char *id)
{
    struct source source AUTO(source_close);
    bool has_changed, has_ended = false;
    struct error *error = source_open(router_of(call), connection, id, &source);
    while (!error && !has_ended && !call_is_cancelled(call))
        error = pass_on_change(call, &source, LOOK_MS, &has_changed, &has_ended);
    return error;
}

/*
 * One of an engine's. What has ended, or is a snapshot that never took its time, is told as it is.
 */
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
    return error ? error : follow(call, connection, operations_read_id(engines_id));
}

/* ---- watching all ---- */

struct sources {
    struct connection_set *set; /* that they are of; NULL: of none yet */
    struct source *items;       /* the router's own first */
    size_t count;
};

static void
sources_close(struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        source_close(&sources->items[i]);
    free(sources->items);
    connection_set_release(sources->set);
}

static struct error *
add_source(struct sources *sources, struct router *router, struct connection *connection)
{
    sources->items = memory_resize(sources->items, (sources->count + 1) * sizeof *sources->items);
    struct error *error = source_open(router, connection, NULL, &sources->items[sources->count]);
    if (!error)
        sources->count++;
    return error;
}

/* An engine stays the same while its file changes in other ways. */
static bool
is_watched(const struct sources *sources, const struct driver *driver)
{
    for (size_t i = 0; i < sources->count; i++)
        if (sources->items[i].connection && sources->items[i].connection->driver == driver)
            return true;
    return false;
}

static bool
is_in_force(const struct connection_set *set, const struct connection *connection)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection && set->slots[i].connection->driver == connection->driver)
            return true;
    return false;
}

static void
drop_old_sources(struct sources *sources)
{
    size_t kept = 0;
    for (size_t i = 0; i < sources->count; i++) {
        struct source *source = &sources->items[i];
        if (source->connection && !is_in_force(sources->set, source->connection))
            source_close(source);
        else
            sources->items[kept++] = *source;
    }
    sources->count = kept;
}

/* Connections come and go meanwhile. */
static struct error *
refresh_sources(struct sources *sources, struct router *router)
{
    struct connection_set *now = connections_current(router->connections);
    if (now == sources->set) {
        connection_set_release(now);
        return NULL;
    }
    connection_set_release(sources->set);
    sources->set = now;
    drop_old_sources(sources);
    struct error *error = sources->count ? NULL : add_source(sources, router, NULL);
    for (size_t i = 0; i < now->count && !error; i++) {
        struct connection *connection = now->slots[i].connection;
        if (connection && connection->spec->driver->operations &&
            !is_watched(sources, connection->driver))
            error = add_source(sources, router, connection);
    }
    return error;
}

/* Waits for the first; then those that are there, but not all if they never end. */
static struct error *
pass_on_changes(struct call *call, const struct source *source, uint32_t timeout_ms)
{
    struct error *error = NULL;
    bool has_changed = true, has_ended;
    for (unsigned i = 0; i < MOST_AT_ONCE && has_changed && !error && !call_is_cancelled(call); i++)
        error = pass_on_change(call, source, i ? 0 : timeout_ms, &has_changed, &has_ended);
    return error;
}

static struct error *
watch_all(struct call *call)
{
    struct sources sources AUTO(sources_close) = {0};
    struct error *error = NULL;
    while (!error && !call_is_cancelled(call)) {
        error = refresh_sources(&sources, router_of(call));
        for (size_t i = 0; i < sources.count && !error; i++) {
            uint32_t slice_ms = (uint32_t)(ROUND_MS / sources.count);
            error = pass_on_changes(call, &sources.items[i], slice_ms ? slice_ms : 1);
        }
    }
    return error;
}

static struct error *
watch(struct call *call, const Skycap__V1__WatchOperationsRequest *request)
{
    operation_record *own;
    if (!request->id[0])
        return watch_all(call);
    struct error *error = find_own(call, request->id, &own);
    if (error)
        return error;
    return own ? follow(call, NULL, own->id) : watch_engines(call, request->id);
}

const struct skycap_v1_operations router_operations_handlers = {
    .get = {get},
    .list = {list_operations},
    .watch = {watch},
    .cancel = {cancel},
};
