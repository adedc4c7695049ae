/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: skycap.v1.Inventory over all connections. Drivers with an engine serve it themselves;
 * for third-party drivers driver_inventory.c uses their CSI lists. CSI has no names: their volumes
 * and snapshots are found by id only, unless ids follow from names.
 */
#include <assert.h>
#include <string.h>

#include "connections/forward/forward.h"
#include "connections/request/global_id.h"
#include "connections/router/driver_inventory.h"
#include "connections/router/homeless.h"
#include "connections/router/lost_volumes.h"
#include "connections/router/merged_list.h"
#include "connections/router/moved.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/router_internal.h"
#include "connections/router/snapshot_copies.h"
#include "ops/ops.h"

#define MOST_ENTRIES 1000

/* What volumes and snapshots have in common. */
struct kind {
    enum id_kind id_kind;
    const char *word;
    const char *get; /* the method that returns one; request and reply have one field */
    struct error *(*get_foreign)(struct call *call, const struct connection_set *set,
                                 struct connection *connection, const char *id, void **out);
    /* By name; NULL: not possible. */
    struct error *(*find_foreign)(struct call *call, const struct connection_set *set,
                                  struct connection *connection, const char *name, void **out);
    /* Completes the answer; may be NULL. */
    struct error *(*finish)(struct call *call, void *info);
    const char *(*id_of)(const void *info);
};

/* A volume is not ready while it is filled from another connection. Its driver does not know. */
static struct error *
finish_volume(struct call *call, void *item)
{
    struct router *router = router_of(call);
    volume_info *info = item;
    operation_record *copy;
    if (!atomic_load(&router->has_choices)) /* then there are no copies, either */
        return NULL;
    struct error *error = ops_get(router->ops, info->volume->volume_id, call_arena(call), &copy);
    if (!error && copy->state == OPERATION_STATE(RUNNING))
        info->ready = false;
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
finish_snapshot(struct call *call, void *info)
{
    router_translate_exports(info, call_arena(call));
    return snapshot_copies_finish(call, info);
}

static const char *
id_of_volume(const void *info)
{
    /* What was found is not NULL. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    return ((const volume_info *)info)->volume->volume_id;
}

static const char *
id_of_snapshot(const void *info)
{
    return ((const snapshot_info *)info)->snapshot->snapshot_id;
}

static const struct kind volume_kind = {
    .id_kind = ID_VOLUME,
    .word = "volume",
    .get = "skycap.v1.Inventory/GetVolume",
    .get_foreign = driver_inventory_get_volume,
    .find_foreign = driver_inventory_find_volume,
    .finish = finish_volume,
    .id_of = id_of_volume,
};
static const struct kind snapshot_kind = {
    .id_kind = ID_SNAPSHOT,
    .word = "snapshot",
    .get = "skycap.v1.Inventory/GetSnapshot",
    .get_foreign = driver_inventory_get_snapshot,
    .finish = finish_snapshot,
    .id_of = id_of_snapshot,
};

/* Does its driver serve the inventory itself? */
static bool
has_inventory(const struct connection *connection)
{
    return connection->spec->driver->speaks_our_ids;
}

/* Takes the error. NOT_FOUND quotes the text that the client sent. */
static struct error *
in_their_words(struct error *error, const struct kind *kind, const char *text)
{
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return error_new(CODE_NOT_FOUND, "there is no %s \"%s\"", kind->word, text);
}

/* ---- finding one ---- */

/* By name, or by the engine's id. */
static struct error *
ask_engine(struct call *call, const struct connection_set *set, struct connection *connection,
           const struct kind *kind, const char *text, void **info)
{
    const struct method *method = service_find_method(kind->get);
    struct arena *arena = call_arena(call);
    ProtobufCMessage *request = arena_alloc(arena, method->input->sizeof_message);
    ProtobufCMessage *reply = arena_alloc(arena, method->output->sizeof_message);
    protobuf_c_message_init(method->input, request);
    protobuf_c_message_init(method->output, reply);
    *(const char **)((char *)request + method->input->fields[0].offset) = text;
    struct error *error =
        forward_own(router_of(call), set, connection, call, kind->get, request, reply);
    if (!error)
        *info = *(void **)((char *)reply + method->output->fields[0].offset);
    return error;
}

/* A node with a copy says what the snapshot's own node does not. Takes the error of that. */
static struct error *
ask_copy(struct call *call, const struct connection_set *set, const char *name, const char *handle,
         struct error *error, void **info)
{
    const char *id = ids_print(ID_SNAPSHOT, handle, call_arena(call));
    struct connection *found = snapshot_copies_find(call, set, name, handle);
    if (!found)
        return error;
    error_free(error);
    return ask_engine(call, set, found, &snapshot_kind, id, info);
}

/* A node that has no such snapshot may have lost it; then nodes with copies know that. */
static struct error *
ask_for_snapshot(struct call *call, const struct connection_set *set, struct connection *home,
                 const char *handle, void **info)
{
    const char *id = ids_print(ID_SNAPSHOT, handle, call_arena(call));
    const char *name = home->spec->name;
    struct error *error = ask_engine(call, set, home, &snapshot_kind, id, info);
    if (error && home->node_address && snapshot_copies_are_worth(error))
        return ask_copy(call, set, name, handle, error, info);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error = ask_copy(call, set, name, handle, error, info);
    if (error || ((const snapshot_info *)*info)->is_orphan)
        return error;
    return error_new(CODE_NOT_FOUND, "the snapshot is deleted"); /* on all nodes, soon */
}

/* The engine of the node that has it, which may have changed. */
static struct error *
ask_engine_by_id(struct call *call, const struct connection_set *set, struct connection *home,
                 const struct kind *kind, const char *handle, void **info)
{
    const struct router *router = router_of(call);
    const char *id = ids_print(kind->id_kind, handle, call_arena(call));
    struct moved moved;
    if (router->cluster && kind->id_kind == ID_SNAPSHOT)
        return ask_for_snapshot(call, set, home, handle, info);
    if (!router->cluster || kind->id_kind != ID_VOLUME)
        return ask_engine(call, set, home, kind, id, info);
    struct connection *connection = moved_guess(router, set, handle, home);
    struct error *error = ask_engine(call, set, connection, kind, id, info);
    if (!error || !moved_is_likely(connection, home, error))
        return error;
    struct error *failure = moved_find(call, set, home->spec->name, handle, &moved);
    struct connection *found = moved.connection ? moved.connection : home;
    if (failure || found == connection || moved.is_deleted) {
        if (!failure && moved.is_deleted)
            error->code = CODE_NOT_FOUND;
        error_free(failure);
        return error;
    }
    error_free(error);
    return ask_engine(call, set, found, kind, id, info);
}

/*
 * A handle whose home is not a node of the cluster, or that no node has which answers: it may have
 * moved. Takes the error.
 */
static struct error *
locate_lost(struct call *call, const struct connection_set *set, const struct global_id *parts,
            struct error *error, struct connection **out)
{
    struct moved moved;
    struct error *failure AUTO(error_cleanup) =
        moved_find(call, set, parts->connection, parts->handle, &moved);
    if (!failure && moved.is_deleted)
        error->code = CODE_NOT_FOUND;
    if (failure || !moved.connection)
        return error;
    error_free(error);
    *out = moved.connection;
    return NULL;
}

static struct error *
find_by_id(struct call *call, const struct connection_set *set, const struct kind *kind,
           const char *id, const struct global_id *parts, void **info)
{
    struct connection *connection;
    struct error *error = connection_set_locate(set, parts->connection, parts->handle, &connection);
    const struct connection *own = connection_set_find(set, parts->connection);
    bool may_move = router_of(call)->cluster && (!own || has_inventory(own));
    if (error && kind->id_kind == ID_VOLUME && may_move)
        error = locate_lost(call, set, parts, error, &connection);
    if (error && kind->id_kind == ID_SNAPSHOT && may_move) {
        error = ask_copy(call, set, parts->connection, parts->handle, error, info);
        return error ? error : finish_snapshot(call, *info);
    }
    if (error)
        return error;
    if (!connection)
        return error_new(CODE_NOT_FOUND, "there is no connection \"%s\" for \"%s\"",
                         parts->connection, id);
    if (homeless_is(set, connection, parts->handle))
        error = homeless_find(call, set, kind->id_kind, parts->handle, &connection);
    if (error && kind->id_kind == ID_VOLUME && may_move)
        error = locate_lost(call, set, parts, error, &connection);
    if (error)
        return in_their_words(error, kind, id);
    error = has_inventory(connection)
                ? ask_engine_by_id(call, set, connection, kind, parts->handle, info)
                : kind->get_foreign(call, set, connection, id, info);
    if (!error && kind->finish)
        error = kind->finish(call, *info);
    return in_their_words(error, kind, id);
}

/* The search for a name. */
struct search {
    const struct kind *kind;
    const char *name;
    void *found; /* the last match */
    const char *ids;
    size_t count;
    struct error *failure;  /* of a connection that did not answer */
    bool only_nodes_failed; /* all of those are on other nodes */
};

static struct error *
ask_by_name(struct call *call, const struct connection_set *set, struct connection *connection,
            const struct search *search, void **found)
{
    const struct kind *kind = search->kind;
    struct error *error = NULL;
    if (has_inventory(connection))
        error = ask_engine(call, set, connection, kind, search->name, found);
    else if (kind->find_foreign)
        error = kind->find_foreign(call, set, connection, search->name, found);
    error = error_forgive(error, CODE_NOT_FOUND);
    return error || !*found || !kind->finish ? error : kind->finish(call, *found);
}

/*
 * What the node with a snapshot says and what one with a copy of it says is the same snapshot.
 * While a volume moves, the node that it leaves and its new one may both have told of it.
 */
static bool
is_same_as_found(const struct search *search, void *found)
{
    return search->count &&
           strcmp(search->kind->id_of(search->found), search->kind->id_of(found)) == 0;
}

/* Of two answers about the same: that of a copy, or of the node that a volume leaves, says less. */
static bool
says_more(const struct search *search, const void *found)
{
    if (search->kind == &snapshot_kind)
        return !((const snapshot_info *)found)->is_replica;
    return !((const volume_info *)found)->moving_to[0];
}

/* Takes the answer of a connection: an error, or what it has found, which may be NULL. */
static void
take_answer(struct call *call, const struct connection *connection, struct error *error,
            void *found, struct search *search)
{
    if (error) {
        search->only_nodes_failed =
            connection->node_address && (!search->failure || search->only_nodes_failed);
        error_free(search->failure);
        search->failure = error;
    } else if (found && is_same_as_found(search, found)) {
        if (says_more(search, found))
            search->found = found;
    } else if (found) {
        search->found = found;
        search->ids = arena_print(call_arena(call), "%s%s%s", search->ids,
                                  search->count++ ? ", " : "", search->kind->id_of(found));
    }
}

static void
search_connection(struct call *call, const struct connection_set *set,
                  struct connection *connection, struct search *search)
{
    void *found = NULL;
    struct error *error = ask_by_name(call, set, connection, search, &found);
    take_answer(call, connection, error, found, search);
}

struct name_question {
    const struct connection_set *set;
    struct connection *connection;
    const struct search *search;
    void *found;
};

static struct error *
ask_node(struct call *call, void *context)
{
    struct name_question *question = context;
    return ask_by_name(call, question->set, question->connection, question->search,
                       &question->found);
}

/* At the same time: several that hang take no longer than one. */
static void
search_nodes(struct call *call, const struct connection_set *set, struct search *search)
{
    struct arena *arena = call_arena(call);
    size_t count = set->elsewhere_count;
    struct name_question *questions = arena_alloc(arena, count * sizeof *questions);
    struct parallel_call *calls = arena_alloc(arena, count * sizeof *calls);
    for (size_t i = 0; i < count; i++) {
        questions[i] = (struct name_question){set, set->elsewhere[i], search, NULL};
        calls[i] = (struct parallel_call){ask_node, &questions[i], NULL};
    }
    parallel_calls_run(call, calls, count, parallel_calls_share_ns(call, 1));
    for (size_t i = 0; i < count; i++)
        take_answer(call, set->elsewhere[i], calls[i].error, questions[i].found, search);
}

/*
 * Takes the failure. A connection that did not answer may have a match, too. But while a node is
 * down, names can be used: orchestrators give each name once in a cluster.
 */
static struct error *
conclude(struct search *search)
{
    const char *name = search->name, *word = search->kind->word;
    struct error *failure = STEAL(search->failure);
    if (search->count > 1) {
        error_free(failure);
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" is the name of several %ss; use the id of one: %s", name, word,
                         search->ids);
    }
    if (failure && search->count && search->only_nodes_failed) {
        error_free(failure);
        return NULL;
    }
    if (failure && search->count)
        return error_wrap(failure,
                          "\"%s\" is a name of %s, but not all connections could be asked whether "
                          "they have a %s \"%s\", too; use the id",
                          name, search->ids, word, name);
    if (failure)
        return error_wrap(failure,
                          "not all connections could be asked whether they have a %s \"%s\"", word,
                          name);
    return search->count ? NULL : error_new(CODE_NOT_FOUND, "there is no %s \"%s\"", word, name);
}

/* Of a copy: the snapshot's own node may say that it is deleted. */
static struct error *
check_copy(struct call *call, const struct connection_set *set, const struct kind *kind,
           const char *name, void **info)
{
    struct global_id parts;
    if (kind != &snapshot_kind || !((const snapshot_info *)*info)->is_replica)
        return NULL;
    const char *id = id_of_snapshot(*info);
    if (!global_id_parse(ID_SNAPSHOT, id, &parts))
        return NULL;
    return in_their_words(find_by_id(call, set, kind, id, &parts, info), kind, name);
}

static struct error *
find_by_name(struct call *call, const struct connection_set *set, const struct kind *kind,
             const char *name, void **info)
{
    struct search search = {.kind = kind, .name = name, .ids = ""};
    const struct connection_slot *wrong = connection_set_wrong(set);
    if (wrong) /* then only_nodes_failed stays false */
        search.failure = error_new(CODE_UNAVAILABLE, "the file of connection \"%s\" is wrong: %s",
                                   wrong->name, wrong->trouble);
    else if ((search.failure = connection_set_check_nodes(set)) ||
             (search.failure = connection_set_check_missing(set)))
        search.only_nodes_failed = true;
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection)
            search_connection(call, set, set->slots[i].connection, &search);
    if (set->elsewhere_count)
        search_nodes(call, set, &search);
    struct error *error = conclude(&search);
    if (error)
        return error;
    assert(search.found);
    *info = search.found;
    return check_copy(call, set, kind, name, info);
}

static struct error *
find(struct call *call, const struct connection_set *set, const struct kind *kind, const char *text,
     void **info)
{
    struct global_id parts;
    if (global_id_parse(kind->id_kind, text, &parts))
        return find_by_id(call, set, kind, text, &parts, info);
    return find_by_name(call, set, kind, text, info);
}

/* ---- volumes ---- */

static struct error *
get_volume(struct call *call, const Skycap__V1__GetVolumeRequest *request,
           Skycap__V1__GetVolumeResponse *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    void *info = NULL;
    struct error *error = find(call, set, &volume_kind, request->volume, &info);
    reply->volume = info;
    return error;
}

static bool
can_list_volumes(const struct merged_list *list, struct connection *connection)
{
    (void)list;
    return has_inventory(connection) || !connection_is_known(connection) ||
           driver_inventory_has_volumes(connection);
}

static struct error *
list_volumes_page(const struct merged_list *list, struct connection *connection, const char *token,
                  size_t most, struct list_page *out)
{
    const Skycap__V1__ListVolumesRequest *asked = list->context;
    Skycap__V1__ListVolumesRequest request = SKYCAP__V1__LIST_VOLUMES_REQUEST__INIT;
    request.brief = asked->brief;
    struct error *error =
        has_inventory(connection)
            ? router_ask_for_page(list, connection, &request.base, token, most, out)
            : driver_inventory_list_volumes(list, connection, token, most, out);
    if (!error && has_inventory(connection))
        lost_volumes_note(list, connection, token, out, lost_volumes_read_info);
    for (size_t i = 0; i < out->count && !error; i++)
        error = finish_volume(list->call, out->entries[i]);
    return error;
}

static struct error *
list_volumes(struct call *call, const Skycap__V1__ListVolumesRequest *request,
             Skycap__V1__ListVolumesResponse *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct merged_list list = {.call = call,
                               .set = set,
                               .context = request,
                               .can = can_list_volumes,
                               .ask = list_volumes_page,
                               .recall = lost_volumes_recall_info,
                               .id_of = id_of_volume};
    return router_run_list(&list, MOST_ENTRIES, &request->base, &reply->base);
}

/* ---- snapshots ---- */

static struct error *
get_snapshot(struct call *call, const Skycap__V1__GetSnapshotRequest *request,
             Skycap__V1__GetSnapshotResponse *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    void *info = NULL;
    struct error *error = find(call, set, &snapshot_kind, request->snapshot, &info);
    reply->snapshot = info;
    return error;
}

/* The volume whose snapshots are listed. */
struct filter {
    struct connection *connection; /* NULL: any */
    const char *name;              /* of a cluster: of any connection of this name; or NULL */
    const char *id;
};

static struct error *
read_filter(struct call *call, const struct connection_set *set, const char *text,
            struct filter *out)
{
    struct global_id parts;
    void *info;
    *out = (struct filter){NULL, NULL, text};
    if (!text[0])
        return NULL;
    if (!global_id_parse(ID_VOLUME, text, &parts)) {
        struct error *error = find_by_name(call, set, &volume_kind, text, &info);
        if (error)
            return error;
        out->id = id_of_volume(info);
        global_id_parse(ID_VOLUME, out->id, &parts);
    }
    struct connection *own = connection_set_find(set, parts.connection);
    if (router_of(call)->cluster && own && has_inventory(own)) { /* the volume may have moved */
        out->name = own->spec->name;
        return NULL;
    }
    struct error *error =
        connection_set_locate(set, parts.connection, parts.handle, &out->connection);
    if (error || out->connection)
        return error;
    return error_new(CODE_NOT_FOUND, "there is no connection \"%s\" for \"%s\"", parts.connection,
                     text);
}

static bool
can_list_snapshots(const struct merged_list *list, struct connection *connection)
{
    const struct filter *filter = list->context;
    if (filter->connection && filter->connection != connection)
        return false;
    if (filter->name && strcmp(connection->spec->name, filter->name) != 0)
        return false;
    return has_inventory(connection) || !connection_is_known(connection) ||
           driver_inventory_has_snapshots(connection);
}

static struct error *
list_snapshots_page(const struct merged_list *list, struct connection *connection,
                    const char *token, size_t most, struct list_page *out)
{
    const struct filter *filter = list->context;
    Skycap__V1__ListSnapshotsRequest request = SKYCAP__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    struct global_id parts;
    if (!connection)
        return snapshot_copies_list(list, filter->id, token, most, out);
    if (!has_inventory(connection))
        return driver_inventory_list_snapshots(list, connection, filter->id, token, most, out);
    if (global_id_parse(ID_VOLUME, filter->id, &parts))
        request.of_volume = ids_print(ID_VOLUME, parts.handle, call_arena(list->call));
    return router_ask_for_page(list, connection, &request.base, token, most, out);
}

static struct error *
list_snapshots(struct call *call, const Skycap__V1__ListSnapshotsRequest *request,
               Skycap__V1__ListSnapshotsResponse *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct filter filter;
    struct merged_list list = {.call = call,
                               .set = set,
                               .context = &filter,
                               .has_copies = router_of(call)->cluster != NULL,
                               .can = can_list_snapshots,
                               .ask = list_snapshots_page,
                               .id_of = id_of_snapshot};
    struct error *error = read_filter(call, set, request->of_volume, &filter);
    return error ? error : router_run_list(&list, MOST_ENTRIES, &request->base, &reply->base);
}

const struct skycap_v1_inventory router_inventory_handlers = {
    .get_volume = {get_volume},
    .list_volumes = {list_volumes},
    .get_snapshot = {get_snapshot},
    .list_snapshots = {list_snapshots},
};
