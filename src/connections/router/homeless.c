/* SPDX-License-Identifier: Apache-2.0 */
/* Handles without a home: see homeless.h. */
#include "connections/router/homeless.h"

#include <string.h>

#include "connections/forward/router_state.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/places.h"

#define ASK_NS UINT64_C(5000000000)

bool
homeless_is(const struct connection_set *set, const struct connection *connection,
            const char *handle)
{
    return (set->elsewhere_count || set->is_waiting) && connection->spec->driver->has_homes &&
           !connection->node_address && !connection_reads_home(connection, handle);
}

/* ---- asking ---- */

struct question {
    struct connection *connection;
    enum id_kind kind;
    const char *handle;
    bool has_it;
};

/* The first field of its request is the id. */
static const struct method *
method_for(enum id_kind kind)
{
    return service_find_method(kind == ID_GROUP ? "csi.v1.GroupController/GetVolumeGroupSnapshot"
                               : kind == ID_SNAPSHOT ? "skycap.v1.Inventory/GetSnapshot"
                                                     : "skycap.v1.Inventory/GetVolume");
}

static struct error *
ask(struct call *call, void *context)
{
    struct question *question = context;
    const struct method *method = method_for(question->kind);
    struct arena *arena = call_arena(call);
    ProtobufCMessage *request = arena_alloc(arena, method->input->sizeof_message);
    ProtobufCMessage *reply = arena_alloc(arena, method->output->sizeof_message);
    protobuf_c_message_init(method->input, request);
    protobuf_c_message_init(method->output, reply);
    *(char **)((char *)request + method->input->fields[0].offset) =
        ids_print(question->kind, question->handle, arena);
    struct connection *connection = question->connection;
    struct error *error =
        connection->spec->driver->call(connection->driver, call, method, request, reply);
    question->has_it = !error;
    return error_forgive(error, CODE_NOT_FOUND);
}

/* All nodes with a connection of the name. */
static size_t
make_questions(const struct connection_set *set, const struct question *own,
               struct question *questions)
{
    size_t count = 0;
    for (size_t i = 0; i < set->elsewhere_count; i++) {
        if (strcmp(set->elsewhere[i]->spec->name, own->connection->spec->name) != 0)
            continue;
        questions[count] = *own;
        questions[count++].connection = set->elsewhere[i];
    }
    return count;
}

/* `*found` is NULL if nobody has it. */
static struct error *
ask_others(struct call *call, const struct connection_set *set, const struct question *own,
           struct connection **found)
{
    struct arena *arena = call_arena(call);
    struct question *questions = arena_alloc(arena, set->elsewhere_count * sizeof *questions);
    struct parallel_call *calls = arena_alloc(arena, set->elsewhere_count * sizeof *calls);
    size_t count = make_questions(set, own, questions);
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct parallel_call){ask, &questions[i], NULL};
    uint64_t share_ns = parallel_calls_share_ns(call, 1);
    parallel_calls_run(call, calls, count, share_ns < ASK_NS ? share_ns : ASK_NS);
    struct error *failure = NULL;
    *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (questions[i].has_it)
            *found = questions[i].connection;
        if (failure || *found)
            error_free(calls[i].error);
        else
            failure = calls[i].error;
    }
    if (!*found)
        return error_wrap(failure, "not all nodes could be asked whether they have it");
    error_free(failure);
    return NULL;
}

struct connection *
homeless_ask_all(struct call *call, const struct connection_set *set, struct connection *own,
                 enum id_kind kind, const char *handle)
{
    struct connection *found;
    struct question here = {own, kind, handle, false};
    error_free(ask(call, &here));
    if (here.has_it)
        return own;
    error_free(ask_others(call, set, &here, &found));
    return found;
}

struct error *
homeless_find(struct call *call, const struct connection_set *set, enum id_kind kind,
              const char *handle, struct connection **connection)
{
    struct places *places = router_of(call)->places;
    /* Handles of engines are unique, whatever the name of the connection. */
    bool is_engine = (*connection)->spec->driver->speaks_our_ids;
    struct connection *found = is_engine ? places_find(places, set, handle) : NULL;
    struct question own = {*connection, kind, handle, false};
    struct error *here AUTO(error_cleanup) = found ? NULL : ask(call, &own);
    struct error *error = NULL;
    if (!found && own.has_it)
        found = own.connection;
    if (!found)
        error = connection_set_check_nodes(set);
    if (!error && !found)
        error = ask_others(call, set, &own, &found);
    if (!error && !found)
        error = connection_set_check_missing(set);
    if (!error && !found) /* it may have left this node */
        error = STEAL(here);
    if (error || !found)
        return error;
    if (is_engine)
        places_set(places, handle, found->place);
    *connection = found;
    return NULL;
}
