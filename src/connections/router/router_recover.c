/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: recovering a volume whose node is lost. All nodes are asked for their newest snapshot
 * of it; the node with the newest one of all takes the volume over. Volumes on several nodes, and
 * of several connections, may have the same name: then its id must be given.
 */
#include <string.h>

#include "connections/request/global_id.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/places.h"
#include "connections/router/router_internal.h"
#include "csi/checks.h"

#define ASK_NS UINT64_C(5000000000)

struct question {
    struct connection *connection;
    const char *volume;
    Skycap__V1__FindCopyReply *reply; /* NULL: it has none */
};

static struct error *
ask(struct call *call, void *context)
{
    struct question *question = context;
    const struct driver_ops *driver = question->connection->spec->driver;
    Skycap__V1__FindCopyRequest request = SKYCAP__V1__FIND_COPY_REQUEST__INIT;
    Skycap__V1__FindCopyReply *reply = arena_alloc(call_arena(call), sizeof *reply);
    skycap__v1__find_copy_reply__init(reply);
    request.volume = (char *)question->volume;
    struct error *error = driver->call(question->connection->driver, call,
                                       SKYCAP_V1_MOVER_FIND_COPY, &request.base, &reply->base);
    if (!error)
        question->reply = reply;
    return error_forgive(error, CODE_NOT_FOUND);
}

static void
add(struct question *questions, size_t *count, struct connection *connection, const char *name,
    const char *volume)
{
    if (connection && connection->spec->driver->speaks_our_ids &&
        (!name || strcmp(connection->spec->name, name) == 0))
        questions[(*count)++] = (struct question){connection, volume, NULL};
}

/* `name`: of the connection; NULL: all. */
static size_t
make_questions(const struct connection_set *set, const char *name, const char *volume,
               struct question *questions)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        add(questions, &count, set->slots[i].connection, name, volume);
    for (size_t i = 0; i < set->elsewhere_count; i++)
        add(questions, &count, set->elsewhere[i], name, volume);
    return count;
}

/* ---- what the nodes have ---- */

/* The newest snapshot of a volume. */
struct copy {
    struct connection *connection;
    const Skycap__V1__FindCopyReply *reply;
    bool is_deleted; /* the volume, as any node knows */
};

struct copies {
    struct copy *items;
    size_t count;
};

/*
 * Clocks of nodes may differ. But in one epoch a volume is on one node, which takes all snapshots
 * of it.
 */
static bool
is_newer(const Skycap__V1__FindCopyReply *a, const Skycap__V1__FindCopyReply *b)
{
    return a->epoch != b->epoch ? a->epoch > b->epoch : a->taken_ns > b->taken_ns;
}

static bool
is_same_volume(const struct copy *a, const struct copy *b)
{
    return strcmp(a->connection->spec->name, b->connection->spec->name) == 0 &&
           strcmp(a->reply->handle, b->reply->handle) == 0;
}

static void
take(struct copies *copies, struct connection *connection, const Skycap__V1__FindCopyReply *reply)
{
    struct copy copy = {connection, reply, reply->is_deleted};
    struct copy *known = copies->items;
    while (known < copies->items + copies->count && !is_same_volume(known, &copy))
        known++;
    if (known == copies->items + copies->count) {
        *known = copy;
        copies->count++;
        return;
    }
    copy.is_deleted = copy.is_deleted || known->is_deleted;
    if (!is_newer(reply, known->reply))
        copy = (struct copy){known->connection, known->reply, copy.is_deleted};
    *known = copy;
}

static void
take_all(const struct question *questions, size_t count, struct arena *arena, struct copies *out)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most += questions[i].reply ? 1 + questions[i].reply->n_more : 0;
    *out = (struct copies){arena_alloc(arena, most * sizeof *out->items), 0};
    for (size_t i = 0; i < count; i++) {
        const Skycap__V1__FindCopyReply *reply = questions[i].reply;
        if (reply)
            take(out, questions[i].connection, reply);
        for (size_t j = 0; reply && j < reply->n_more; j++)
            take(out, questions[i].connection, reply->more[j]);
    }
}

/* Nodes that do not answer have no copy that could be used. */
static void
ask_all(struct call *call, const struct connection_set *set, const char *name, const char *volume,
        struct copies *out)
{
    struct arena *arena = call_arena(call);
    size_t most = set->count + set->elsewhere_count;
    struct question *questions = arena_alloc(arena, most * sizeof *questions);
    struct parallel_call *calls = arena_alloc(arena, most * sizeof *calls);
    size_t count = make_questions(set, name, volume, questions);
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct parallel_call){ask, &questions[i], NULL};
    uint64_t share_ns = parallel_calls_share_ns(call, 2);
    parallel_calls_run(call, calls, count, share_ns < ASK_NS ? share_ns : ASK_NS);
    for (size_t i = 0; i < count; i++)
        error_free(calls[i].error);
    take_all(questions, count, arena, out);
}

/* ---- which volume ---- */

static bool
can_be_recovered(const struct copy *copy)
{
    return copy->reply->is_lost && !copy->is_deleted;
}

static const char *
id_of(const struct copy *copy, struct arena *arena)
{
    return arena_print(arena, "v:%s/%s", copy->connection->spec->name, copy->reply->handle);
}

static struct error *
refuse_several(const struct copies *copies, const char *volume, struct arena *arena)
{
    const char *list = "";
    for (size_t i = 0; i < copies->count; i++)
        if (can_be_recovered(&copies->items[i]))
            list = arena_print(arena, "%s%s%s on node \"%s\"", list, list[0] ? ", " : "",
                               id_of(&copies->items[i], arena), copies->items[i].reply->owner);
    return error_new(CODE_FAILED_PRECONDITION,
                     "several volumes of lost nodes are called \"%s\": give the id of one in place "
                     "of the name: %s",
                     volume, list);
}

static struct error *
refuse(const struct copies *copies, const char *volume)
{
    for (size_t i = 0; i < copies->count; i++)
        if (!copies->items[i].is_deleted)
            return error_new(
                CODE_FAILED_PRECONDITION,
                "node \"%s\", which has the volume, is not lost: move the volume instead",
                copies->items[i].reply->owner);
    if (copies->count)
        return error_new(CODE_NOT_FOUND,
                         "the volume \"%s\" was deleted; restore a snapshot of it instead", volume);
    return error_new(CODE_NOT_FOUND, "no node that answers has a snapshot of the volume \"%s\"",
                     volume);
}

static struct error *
choose(const struct copies *copies, const char *volume, struct arena *arena,
       const struct copy **out)
{
    *out = NULL;
    for (size_t i = 0; i < copies->count; i++) {
        if (!can_be_recovered(&copies->items[i]))
            continue;
        if (*out)
            return refuse_several(copies, volume, arena);
        *out = &copies->items[i];
    }
    return *out ? NULL : refuse(copies, volume);
}

/* ---- recovering ---- */

static struct error *
recover_at(struct call *call, const struct copy *best)
{
    const struct driver_ops *driver = best->connection->spec->driver;
    Skycap__V1__RecoverCopyRequest request = SKYCAP__V1__RECOVER_COPY_REQUEST__INIT;
    Skycap__V1__RecoverCopyReply reply = SKYCAP__V1__RECOVER_COPY_REPLY__INIT;
    request.snapshot = best->reply->snapshot;
    struct error *error = driver->call(best->connection->driver, call, SKYCAP_V1_MOVER_RECOVER,
                                       &request.base, &reply.base);
    if (!error)
        places_set(router_of(call)->places, best->reply->handle, best->connection->place);
    return error;
}

static void
fill(const struct copy *best, struct arena *arena, Skycap__V1__RecoverVolumeReply *reply)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(best->connection->driver);
    reply->volume_id = (char *)id_of(best, arena);
    reply->node_id = arena_string(arena, facts->node_id ? facts->node_id : "");
    reply->lost_node_id = best->reply->owner;
    reply->taken_ns = best->reply->taken_ns;
    reply->snapshot = best->reply->snapshot;
    reply->is_before_recovery = best->reply->is_before_recovery;
    reply->is_only_store_lost = best->reply->is_only_store_lost;
}

/* Copies come and go between two requests, and nodes that have them are lost. */
static struct error *
check_copy(const Skycap__V1__RecoverVolumeRequest *request,
           const Skycap__V1__RecoverVolumeReply *newest)
{
    if (!request->snapshot[0] || strcmp(request->snapshot, newest->snapshot) == 0)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "the newest copy of \"%s\" that can be reached is of the snapshot \"%s\" now, "
                     "not \"%s\": ask again what would be lost",
                     request->volume, newest->snapshot, request->snapshot);
}

struct error *
router_recover_volume(struct call *call, const Skycap__V1__RecoverVolumeRequest *request,
                      Skycap__V1__RecoverVolumeReply *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct global_id parts;
    struct error *error = checks_name("volume", request->volume);
    if (!error)
        error = connection_set_check_nodes(set);
    if (error)
        return error;
    bool is_id = global_id_parse(ID_VOLUME, request->volume, &parts);
    struct copies copies;
    const struct copy *best;
    ask_all(call, set, is_id ? parts.connection : NULL, is_id ? parts.handle : request->volume,
            &copies);
    error = choose(&copies, request->volume, call_arena(call), &best);
    if (error)
        return error;
    fill(best, call_arena(call), reply);
    error = check_copy(request, reply);
    return error || request->dry_run ? error : recover_at(call, best);
}
