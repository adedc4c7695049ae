/* SPDX-License-Identifier: Apache-2.0 */
/* Handles without a home: see homeless.h. */
#include "connections/router/homeless.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "connections/forward/router_state.h"
#include "connections/router/parallel_calls.h"
#include "volumes/handle.h"

#define SLOTS 4096 /* an answer that is overwritten is asked for again */
#define MAX_PLACE 64
#define ASK_NS UINT64_C(5000000000)

struct homeless {
    pthread_mutex_t lock;
    struct known {
        char handle[BACKEND_HANDLE_SIZE];
        char place[MAX_PLACE];
    } * known; /* by hash; SLOTS of them, or NULL */
};

struct homeless *
homeless_new(void)
{
    struct homeless *homeless = memory_zeroed(sizeof *homeless);
    pthread_mutex_init(&homeless->lock, NULL);
    return homeless;
}

void
homeless_free(struct homeless *homeless)
{
    if (!homeless)
        return;
    pthread_mutex_destroy(&homeless->lock);
    free(homeless->known);
    free(homeless);
}

bool
homeless_is(const struct connection_set *set, const struct connection *connection,
            const char *handle)
{
    char home[HANDLE_HOME_SIZE];
    return (set->elsewhere_count || set->is_waiting) && connection->spec->driver->speaks_our_ids &&
           !connection->node_address && !handle_read_home(handle, home);
}

/* ---- what is known ---- */

static struct connection *
recall(struct homeless *homeless, const struct connection_set *set, const char *handle)
{
    char place[MAX_PLACE] = "";
    pthread_mutex_lock(&homeless->lock);
    if (homeless->known) {
        const struct known *known = &homeless->known[hash_text(handle) % SLOTS];
        if (strcmp(known->handle, handle) == 0)
            memcpy(place, known->place, sizeof place);
    }
    pthread_mutex_unlock(&homeless->lock);
    return place[0] ? connection_set_find_place(set, place) : NULL;
}

static void
remember(struct homeless *homeless, const char *handle, const char *place)
{
    if (strlen(handle) >= BACKEND_HANDLE_SIZE || strlen(place) >= MAX_PLACE)
        return;
    pthread_mutex_lock(&homeless->lock);
    if (!homeless->known)
        homeless->known = memory_zeroed(SLOTS * sizeof *homeless->known);
    struct known *known = &homeless->known[hash_text(handle) % SLOTS];
    strcpy(known->handle, handle);
    strcpy(known->place, place);
    pthread_mutex_unlock(&homeless->lock);
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

struct error *
homeless_find(struct call *call, const struct connection_set *set, enum id_kind kind,
              const char *handle, struct connection **connection)
{
    struct homeless *homeless = router_of(call)->homeless;
    struct connection *found = recall(homeless, set, handle);
    struct question own = {*connection, kind, handle, false};
    struct error *error = found ? NULL : ask(call, &own);
    if (!error && !found && own.has_it)
        found = own.connection;
    if (!error && !found)
        error = connection_set_check_nodes(set);
    if (!error && !found)
        error = ask_others(call, set, &own, &found);
    if (error || !found)
        return error;
    remember(homeless, handle, found->place);
    *connection = found;
    return NULL;
}
