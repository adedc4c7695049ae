/* SPDX-License-Identifier: Apache-2.0 */
/* The router: lists over all connections, and CSI's lists. See merged_list.h. */
#include <stdlib.h>
#include <string.h>

#include "connections/copy/cross_copy_rows.h"
#include "connections/forward/forward.h"
#include "connections/forward/route.h"
#include "connections/router/homeless.h"
#include "connections/router/lost_volumes.h"
#include "connections/router/merged_list.h"
#include "connections/router/router_internal.h"
#include "connections/router/snapshot_copies.h"

#define MOST_ENTRIES 5000 /* in one answer, whatever the client wants */

/* ---- any list ---- */

/* The fields that all requests and replies of lists have. */
struct list_fields {
    int32_t *max_entries;
    char **starting_token;
};

struct list_answer {
    size_t *count;
    void ***entries; /* the repeated field */
    char **next_token;
};

static void *
field_of(const ProtobufCMessage *message, const char *name)
{
    return (char *)message +
           protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name)->offset;
}

static struct list_fields
request_fields(const ProtobufCMessage *request)
{
    return (struct list_fields){field_of(request, "max_entries"),
                                field_of(request, "starting_token")};
}

static struct list_answer
answer_fields(const ProtobufCMessage *reply)
{
    const ProtobufCFieldDescriptor *field = reply->descriptor->fields;
    while (field->label != PROTOBUF_C_LABEL_REPEATED)
        field++;
    return (struct list_answer){(size_t *)((char *)reply + field->quantifier_offset),
                                (void ***)((char *)reply + field->offset),
                                field_of(reply, "next_token")};
}

struct error *
router_run_list(struct merged_list *list, size_t limit, const ProtobufCMessage *request,
                ProtobufCMessage *reply)
{
    struct list_fields fields = request_fields(request);
    struct list_answer answer = answer_fields(reply);
    struct list_page page;
    list->log = router_of(list->call)->log;
    struct error *error =
        merged_list_run(list, *fields.max_entries, limit, *fields.starting_token, &page);
    if (error)
        return error;
    *answer.entries = page.entries;
    *answer.count = page.count;
    *answer.next_token = page.next_token;
    if (!page.missing[0])
        return NULL;
    return call_add_trailer(list->call, "skycap-degraded", page.missing, strlen(page.missing));
}

/* The page that a reply holds. */
static struct list_page
page_of(const ProtobufCMessage *reply)
{
    struct list_answer answer = answer_fields(reply);
    return (struct list_page){*answer.entries, *answer.count, *answer.next_token, NULL};
}

struct error *
router_ask_for_page(const struct merged_list *list, struct connection *connection,
                    ProtobufCMessage *request, const char *token, size_t most,
                    struct list_page *out)
{
    const struct method *method = call_method(list->call);
    ProtobufCMessage *page = arena_alloc(call_arena(list->call), method->output->sizeof_message);
    struct list_fields fields = request_fields(request);
    *fields.starting_token = (char *)token;
    *fields.max_entries = (int32_t)most;
    protobuf_c_message_init(method->output, page);
    struct error *error = forward_own(router_of(list->call), list->set, connection, list->call,
                                      method->path, request, page);
    if (!error)
        *out = page_of(page);
    return error;
}

/* ---- one connection ---- */

struct asked {
    const ProtobufCMessage *request;
    const struct rule *rule;
    const char *only; /* connections of this name; NULL: all */
};

static bool
can_list(const struct merged_list *list, struct connection *connection)
{
    const struct asked *asked = list->context;
    struct error *lacking;
    return (!asked->only || strcmp(connection->spec->name, asked->only) == 0) &&
           rules_is_supported(asked->rule, connection, &lacking);
}

static const char *
id_of_volume(const void *entry)
{
    const Csi__V1__Volume *volume = ((const Csi__V1__ListVolumesResponse__Entry *)entry)->volume;
    return volume ? volume->volume_id : "";
}

static const char *
id_of_health(const void *entry)
{
    return ((const Csi__V1__VolumeHealth *)entry)->volume_id;
}

static const char *
id_of_snapshot(const void *entry)
{
    const Csi__V1__Snapshot *snapshot =
        ((const Csi__V1__ListSnapshotsResponse__Entry *)entry)->snapshot;
    return snapshot ? snapshot->snapshot_id : "";
}

typedef const char *id_function(const void *entry);

static id_function *
id_function_of(const struct call *call)
{
    const ProtobufCMessageDescriptor *type = call_method(call)->output;
    if (type == &csi__v1__list_snapshots_response__descriptor)
        return id_of_snapshot;
    return type == &csi__v1__list_volumes_response__descriptor ? id_of_volume : id_of_health;
}

/* Hides volumes that are still being filled. */
static struct error *
hide(const struct merged_list *list, const struct connection *connection,
     const struct list_page *page)
{
    if (list->id_of == id_of_snapshot)
        return NULL;
    return cross_copy_rows_hide(list->call, list->set, connection, list->id_of, page->entries,
                                page->count);
}

/* Snapshots of nodes that were left out, from copies on other nodes. */
static struct error *
ask_for_copies(const struct merged_list *list, const char *token, size_t most,
               struct list_page *out)
{
    const struct asked *asked = list->context;
    const Csi__V1__ListSnapshotsRequest *request = (const void *)asked->request;
    struct error *error = snapshot_copies_list(list, request->source_volume_id, token, most, out);
    for (size_t i = 0; !error && i < out->count; i++) {
        Csi__V1__ListSnapshotsResponse__Entry *entry =
            arena_alloc(call_arena(list->call), sizeof *entry);
        csi__v1__list_snapshots_response__entry__init(entry);
        entry->snapshot = ((const Skycap__V1__SnapshotInfo *)out->entries[i])->snapshot;
        out->entries[i] = entry;
    }
    return error;
}

static struct error *
ask(const struct merged_list *list, struct connection *connection, const char *token, size_t most,
    struct list_page *out)
{
    const struct asked *asked = list->context;
    struct arena *arena = call_arena(list->call);
    if (!connection)
        return ask_for_copies(list, token, most, out);
    const struct method *method = call_method(list->call);
    ProtobufCMessage *request = (ProtobufCMessage *)arena_copy(
        arena, asked->request, asked->request->descriptor->sizeof_message);
    struct list_fields fields = request_fields(request);
    *fields.starting_token = (char *)token;
    if (*fields.max_entries || connection->spec->driver->speaks_our_ids)
        *fields.max_entries = (int32_t)most;
    ProtobufCMessage *page = arena_alloc(arena, method->output->sizeof_message);
    protobuf_c_message_init(method->output, page);
    struct error *error = forward_call(router_of(list->call), list->set, connection, list->call,
                                       method, request, page);
    if (error)
        return error;
    *out = page_of(page);
    if (list->id_of == id_of_volume)
        lost_volumes_note(list, connection, token, out, lost_volumes_read_csi);
    return hide(list, connection, out);
}

/* ---- all of them ---- */

/* `only`: of the connections of this name, on all nodes; NULL: of all. */
static struct error *
run_list(struct call *call, const struct connection_set *set, const char *only, const void *request,
         void *reply)
{
    struct asked asked = {request, rules_find(call_method(call)->path), only};
    struct merged_list list = {.call = call,
                               .set = set,
                               .context = &asked,
                               .can = can_list,
                               .ask = ask,
                               .id_of = id_function_of(call)};
    list.has_copies = router_of(call)->cluster && list.id_of == id_of_snapshot;
    if (list.id_of == id_of_volume)
        list.recall = lost_volumes_recall_csi;
    else if (list.id_of == id_of_health)
        list.recall = lost_volumes_recall_health;
    return router_run_list(&list, MOST_ENTRIES, request, reply);
}

struct error *
router_list(struct call *call, const void *request, void *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    return run_list(call, set, NULL, request, reply);
}

/* The snapshot itself, or what a node with a copy says. */
static struct error *
list_one(struct call *call, const struct connection_set *set, struct connection *connection,
         const struct route *route, const void *request, void *reply)
{
    struct router *router = router_of(call);
    const char *name = connection ? connection->spec->name : route->own->spec->name;
    struct error *error =
        connection
            ? forward_call(router, set, connection, call, call_method(call),
                           (ProtobufCMessage *)request, reply)
            : error_new(CODE_UNAVAILABLE, "the node of \"%s\" is not registered", route->handle);
    if (!error || !router->cluster || route->kind != ID_SNAPSHOT ||
        !snapshot_copies_are_worth(error))
        return error;
    struct connection *found = snapshot_copies_find(call, set, name, route->handle);
    if (!found || found == connection)
        return error;
    error_free(error);
    return forward_call(router, set, found, call, call_method(call), (ProtobufCMessage *)request,
                        reply);
}

/*
 * The filter names one connection. If it does not exist, the list is empty. A volume may have
 * moved, so its snapshots may be on any node.
 */
static struct error *
list_filtered(struct call *call, const void *request, void *reply)
{
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct route route;
    struct error *nowhere AUTO(error_cleanup) = route_find(router, set, request, &route);
    struct error *lacking, *error;
    bool is_of_cluster =
        router->cluster && (nowhere ? route.own != NULL
                                    : route.connection && !route.unknown_id &&
                                          route.connection->spec->driver->speaks_our_ids);
    if (is_of_cluster && route.kind == ID_VOLUME)
        return run_list(call, set, (nowhere ? route.own : route.connection)->spec->name, request,
                        reply);
    if (nowhere && is_of_cluster && nowhere->code == CODE_UNAVAILABLE)
        return list_one(call, set, NULL, &route, request, reply);
    if (nowhere && nowhere->code == CODE_UNAVAILABLE)
        return STEAL(nowhere);
    if (nowhere || !route.connection || route.unknown_id ||
        !rules_is_supported(rules_find(call_method(call)->path), route.connection, &lacking))
        return NULL;
    if (homeless_is(set, route.connection, route.handle)) {
        error = homeless_find(call, set, route.kind, route.handle, &route.connection);
        if (error)
            return error;
    }
    error = list_one(call, set, route.connection, &route, request, reply);
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
router_list_snapshots(struct call *call, const void *request, void *reply)
{
    const Csi__V1__ListSnapshotsRequest *asked = request;
    if (asked->snapshot_id[0] || asked->source_volume_id[0])
        return list_filtered(call, request, reply);
    return router_list(call, request, reply);
}
