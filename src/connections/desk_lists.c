/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The desk: lists over all connections, one connection after the other, by name.
 *
 * A token is NAME:SKIP:TOKEN: the connection to go on with, how many entries of its page have been told already, and its own token for that page. It holds all
 * that is needed, so it is good after a restart; and if the connection is gone by then the list goes on with the next name. A connection
 * that does not answer is left out: that it is down, the health RPCs and the metrics tell.
 */
#include <stdlib.h>
#include <string.h>

#include "connections/desk_internal.h"
#include "connections/id_fields.h"
#include "connections/pass.h"
#include "connections/places.h"
#include "connections/route.h"

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

/* ---- tokens ---- */

struct token {
    const char *name; /* "" : from the first */
    size_t skip;
    const char *rest;
};

static struct error *
parse_token(const char *text, struct arena *arena, struct token *out)
{
    *out = (struct token){"", 0, ""};
    if (!text[0])
        return NULL;
    const char *first = strchr(text, ':');
    char *end = NULL;
    unsigned long skip = first ? strtoul(first + 1, &end, 10) : 0;
    if (!first || end == first + 1 || *end != ':' || first[1] == '-' || skip > MOST_ENTRIES * 100)
        return error_new(CODE_ABORTED, "starting_token is not one of ours: list anew");
    *out = (struct token){arena_copy(arena, text, (size_t)(first - text)), skip, end + 1};
    return NULL;
}

static char *
print_token(const char *name, size_t skip, const char *rest, struct arena *arena)
{
    return arena_print(arena, "%s:%zu:%s", name, skip, rest);
}

/* ---- one connection ---- */

struct listing {
    struct call *call;
    struct desk *desk;
    const struct connection_set *set;
    const ProtobufCMessage *request;
    const struct rule *rule;
    struct list_answer answer;
    size_t room; /* entries that still fit */
    size_t answered;
    struct error *failure; /* of a connection that was left out */
};

static struct error *
ask(struct listing *listing, struct connection *connection, const struct token *at,
    ProtobufCMessage **page)
{
    struct arena *arena = call_arena(listing->call);
    const struct method *method = call_method(listing->call);
    ProtobufCMessage *request = (ProtobufCMessage *)arena_copy(
        arena, listing->request, listing->request->descriptor->sizeof_message);
    struct list_fields fields = request_fields(request);
    *fields.starting_token = (char *)at->rest;
    if (*fields.max_entries)
        *fields.max_entries = (int32_t)(listing->room + at->skip);
    *page = arena_alloc(arena, method->output->sizeof_message);
    protobuf_c_message_init(method->output, *page);
    return pass_call(listing->desk, listing->set, connection, listing->call, method, request,
                     *page);
}

static void
tell_places(struct listing *listing, const struct connection *connection, void *entry)
{
    if (call_method(listing->call)->output != &csi__v1__list_volumes_response__descriptor)
        return;
    Csi__V1__ListVolumesResponse__Entry *volume = entry;
    if (volume->volume)
        places_translate_out(listing->set, connection, volume->volume, call_arena(listing->call));
}

/* Takes what fits. The token to go on from if not all of the page did, else NULL. */
static char *
take_page(struct listing *listing, struct connection *connection, const struct token *at,
          const ProtobufCMessage *page)
{
    struct list_answer from = answer_fields(page);
    size_t i = at->skip;
    for (; i < *from.n_entries && listing->room; i++, listing->room--) {
        tell_places(listing, connection, (*from.entries)[i]);
        (*listing->answer.entries)[(*listing->answer.n_entries)++] = (*from.entries)[i];
    }
    if (i >= *from.n_entries)
        return NULL;
    return print_token(connection->spec->name, i, at->rest, call_arena(listing->call));
}

static struct error *
list_connection(struct listing *listing, struct connection *connection, struct token at)
{
    for (;;) {
        ProtobufCMessage *page;
        struct error *error = ask(listing, connection, &at, &page);
        if (error)
            return error;
        const char *next = *answer_fields(page).next_token;
        char *unfinished = take_page(listing, connection, &at, page);
        if (!unfinished && next[0] && !listing->room)
            unfinished = print_token(connection->spec->name, 0, next, call_arena(listing->call));
        if (unfinished) {
            *listing->answer.next_token = unfinished;
            return NULL;
        }
        if (!next[0])
            return NULL;
        if (strcmp(next, at.rest) == 0)
            return error_new(CODE_INTERNAL, "the driver's pages never end");
        at = (struct token){connection->spec->name, 0, next};
    }
}

/* ---- all of them ---- */

static bool
can_list(const struct listing *listing, const struct connection *connection)
{
    struct error *lacking;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return facts->is_known && pass_is_possible(listing->rule, connection, &lacking);
}

/* Takes the error. */
static void
leave_out(struct listing *listing, const struct connection *connection, struct error *error)
{
    log_warn(listing->desk->options.log, "a connection is left out of a list",
             LOG_TEXT("connection", connection->spec->name), LOG_TEXT("error", error->message));
    error_free(listing->failure);
    listing->failure = error;
}

static struct error *
list_all(struct listing *listing, const struct token *start)
{
    for (size_t i = 0; i < listing->set->count && !(*listing->answer.next_token)[0]; i++) {
        struct connection *connection = listing->set->slots[i].connection;
        const char *name = listing->set->slots[i].name;
        if (!connection || strcmp(name, start->name) < 0 || !can_list(listing, connection))
            continue;
        if (!listing->room) {
            *listing->answer.next_token = print_token(name, 0, "", call_arena(listing->call));
            break;
        }
        bool goes_on = strcmp(name, start->name) == 0;
        struct error *error =
            list_connection(listing, connection, goes_on ? *start : (struct token){name, 0, ""});
        /* The driver does not know its own token any more. */
        if (error && error->code == CODE_ABORTED && goes_on)
            return error;
        if (error)
            leave_out(listing, connection, error);
        else
            listing->answered++;
    }
    return listing->answered ? NULL : STEAL(listing->failure);
}

static struct error *
run_list(struct call *call, const void *request, void *reply, const struct rule *rule)
{
    struct desk *desk = desk_of(call);
    struct arena *arena = call_arena(call);
    struct list_fields asked = request_fields(request);
    struct token start;
    if (*asked.max_entries < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_entries is negative");
    struct error *error = parse_token(*asked.starting_token, arena, &start);
    if (error)
        return error;
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(desk->options.connections);
    struct listing listing = {
        .call = call,
        .desk = desk,
        .set = set,
        .request = request,
        .rule = rule,
        .answer = answer_fields(reply),
        .room = *asked.max_entries && *asked.max_entries < MOST_ENTRIES ? (size_t)*asked.max_entries
                                                                        : MOST_ENTRIES,
    };
    *listing.answer.entries = arena_alloc(arena, listing.room * sizeof(void *));
    error = list_all(&listing, &start);
    error_free(listing.failure);
    return error;
}

#define LIST_RULE(name)                                                                            \
    (&(const struct rule){.need = NEED_CONTROLLER,                                                 \
                          .capability = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name, \
                          .lacking_is_fine = true})

struct error *
desk_list_volumes(struct call *call, const void *request, void *reply)
{
    return run_list(call, request, reply, LIST_RULE(LIST_VOLUMES));
}

struct error *
desk_list_volume_health(struct call *call, const void *request, void *reply)
{
    return run_list(call, request, reply, LIST_RULE(LIST_VOLUME_HEALTH));
}

/* A filter names one connection; what is not there is in no list. */
static struct error *
list_filtered(struct call *call, const void *request, void *reply)
{
    struct desk *desk = desk_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(desk->options.connections);
    struct route route;
    struct error *error = route_find(desk, set, request, &route);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return NULL;
    }
    struct error *lacking;
    if (error || !route.connection || route.stray ||
        !pass_is_possible(LIST_RULE(LIST_SNAPSHOTS), route.connection, &lacking))
        return error;
    error = pass_call(desk, set, route.connection, call, call_method(call),
                      (ProtobufCMessage *)request, reply);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        error = NULL;
    }
    return error;
}

struct error *
desk_list_snapshots(struct call *call, const void *request, void *reply)
{
    const Csi__V1__ListSnapshotsRequest *asked = request;
    if (asked->snapshot_id[0] || asked->source_volume_id[0])
        return list_filtered(call, request, reply);
    return run_list(call, request, reply, LIST_RULE(LIST_SNAPSHOTS));
}
