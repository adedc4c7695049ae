/* SPDX-License-Identifier: Apache-2.0 */
/* The router: CSI's lists over all connections; merged_list.h tells how they are put together. */
#include <stdlib.h>
#include <string.h>

#include "connections/copy/cross_copy_rows.h"
#include "connections/forward/forward.h"
#include "connections/forward/route.h"
#include "connections/router/merged_list.h"
#include "connections/router/router_internal.h"

#define MOST_ENTRIES 5000 /* in one answer, whatever is asked for */

/* The three lists have these fields in common. */
struct list_fields {
    int32_t *max_entries;
    char **starting_token;
};

struct list_answer {
    size_t *n_entries;
    void ***entries;
    char **next_token;
};

static void *
field_of(const ProtobufCMessage *message, const char *name, size_t **count)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (count)
        *count = (size_t *)((char *)message + field->quantifier_offset);
    return (char *)message + field->offset;
}

static struct list_fields
request_fields(const ProtobufCMessage *request)
{
    return (struct list_fields){field_of(request, "max_entries", NULL),
                                field_of(request, "starting_token", NULL)};
}

static struct list_answer
answer_fields(const ProtobufCMessage *reply)
{
    struct list_answer answer;
    answer.entries = field_of(reply, "entries", &answer.n_entries);
    answer.next_token = field_of(reply, "next_token", NULL);
    return answer;
}

/* ---- one connection ---- */

struct asked {
    const ProtobufCMessage *request;
    const struct rule *rule;
};

static bool
can_list(const struct merged_list *list, struct connection *connection)
{
    const struct asked *asked = list->context;
    struct error *lacking;
    return rules_is_supported(asked->rule, connection, &lacking);
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

/* Volumes that are not there yet for anybody but us. */
static struct error *
hide(const struct merged_list *list, const struct connection *connection,
     const struct list_page *page)
{
    const ProtobufCMessageDescriptor *type = call_method(list->call)->output;
    if (type == &csi__v1__list_snapshots_response__descriptor)
        return NULL;
    return cross_copy_rows_hide(list->call, list->set, connection,
                                type == &csi__v1__list_volumes_response__descriptor ? id_of_volume
                                                                                    : id_of_health,
                                page->entries, page->count);
}

static struct error *
ask(const struct merged_list *list, struct connection *connection, const char *token, size_t most,
    struct list_page *out)
{
    const struct asked *asked = list->context;
    struct arena *arena = call_arena(list->call);
    const struct method *method = call_method(list->call);
    ProtobufCMessage *request = (ProtobufCMessage *)arena_copy(
        arena, asked->request, asked->request->descriptor->sizeof_message);
    struct list_fields fields = request_fields(request);
    *fields.starting_token = (char *)token;
    if (*fields.max_entries)
        *fields.max_entries = (int32_t)most;
    ProtobufCMessage *page = arena_alloc(arena, method->output->sizeof_message);
    protobuf_c_message_init(method->output, page);
    struct error *error = forward_call(router_of(list->call), list->set, connection, list->call,
                                       method, request, page);
    if (error)
        return error;
    struct list_answer answer = answer_fields(page);
    *out = (struct list_page){*answer.entries, *answer.n_entries, *answer.next_token};
    return hide(list, connection, out);
}

/* ---- all of them ---- */

static struct error *
run_list(struct call *call, const void *request, void *reply)
{
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct asked asked = {request, rules_find(call_method(call)->path)};
    struct merged_list list = {.call = call,
                               .log = router->log,
                               .set = set,
                               .context = &asked,
                               .can = can_list,
                               .ask = ask};
    struct list_fields fields = request_fields(request);
    struct list_page page;
    struct error *error =
        merged_list_run(&list, *fields.max_entries, MOST_ENTRIES, *fields.starting_token, &page);
    if (error)
        return error;
    struct list_answer answer = answer_fields(reply);
    *answer.entries = page.entries;
    *answer.n_entries = page.count;
    *answer.next_token = page.next_token;
    return NULL;
}

struct error *
router_list_volumes(struct call *call, const void *in, void *out)
{
    return run_list(call, in, out);
}

struct error *
router_list_volume_health(struct call *call, const void *in, void *out)
{
    return run_list(call, in, out);
}

/* A filter names one connection; what is not there is in no list. */
static struct error *
list_filtered(struct call *call, const void *request, void *reply)
{
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct route route;
    /* A connection that there is not has none, and no snapshot is of two. */
    struct error *nowhere AUTO(error_cleanup) = route_find(router, set, request, &route);
    struct error *lacking, *error;
    if (nowhere || !route.connection || route.unknown_id ||
        !rules_is_supported(rules_find(call_method(call)->path), route.connection, &lacking))
        return NULL;
    error = forward_call(router, set, route.connection, call, call_method(call),
                         (ProtobufCMessage *)request, reply);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        error = NULL;
    }
    return error;
}

struct error *
router_list_snapshots(struct call *call, const void *in, void *out)
{
    const Csi__V1__ListSnapshotsRequest *asked = in;
    if (asked->snapshot_id[0] || asked->source_volume_id[0])
        return list_filtered(call, in, out);
    return run_list(call, in, out);
}
