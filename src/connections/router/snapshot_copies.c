/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of snapshots: see snapshot_copies.h. */
#include "connections/router/snapshot_copies.h"

#include <string.h>

#include "cluster/cluster.h"
#include "cluster/replicator.h"
#include "connections/request/global_id.h"
#include "connections/router/homeless.h"
#include "connections/router/parallel_calls.h"
#include "proto/replica.rpc.h"

#define ASK_NS UINT64_C(5000000000)

typedef Skycap__V1__SnapshotInfo snapshot_info;

bool
snapshot_copies_are_worth(const struct error *error)
{
    return (error->code == CODE_UNAVAILABLE || error->code == CODE_DEADLINE_EXCEEDED) &&
           !error->in_doubt;
}

struct connection *
snapshot_copies_find(struct call *call, const struct connection_set *set, const char *name,
                     const char *handle)
{
    struct connection *own = connection_set_find(set, name);
    return own ? homeless_ask_all(call, set, own, ID_SNAPSHOT, handle) : NULL;
}

/* ---- one snapshot ---- */

static bool
is_deletion(const struct forward *f)
{
    return f->request->descriptor == &csi__v1__delete_snapshot_request__descriptor;
}

/* Takes the error of the snapshot's own node. */
static struct error *
run_at_copy(struct forward *f, const char *name, const char *handle, struct error *error)
{
    struct connection *found = snapshot_copies_find(f->call, f->set, name, handle);
    if (!found || found == f->connection)
        return error;
    error_free(error);
    f->connection = found;
    return forward_run(f);
}

/* A deletion is decided by the snapshot's own node. */
struct error *
snapshot_copies_run(struct forward *f, const char *handle)
{
    const char *name = f->connection->spec->name;
    struct error *error = forward_run(f);
    if (!error || !snapshot_copies_are_worth(error) || is_deletion(f) ||
        !f->connection->node_address)
        return error;
    return run_at_copy(f, name, handle, error);
}

struct drop {
    struct connection *connection;
    const char *handle;
};

static struct error *
drop_copy(struct call *call, void *context)
{
    const struct drop *drop = context;
    Skycap__V1__DropReplicaRequest request = SKYCAP__V1__DROP_REPLICA_REQUEST__INIT;
    Skycap__V1__DropReplicaReply reply = SKYCAP__V1__DROP_REPLICA_REPLY__INIT;
    request.handle = (char *)drop->handle;
    return drop->connection->spec->driver->call(
        drop->connection->driver, call, SKYCAP_V1_REPLICATOR_DROP, &request.base, &reply.base);
}

static size_t
list_connections(const struct connection_set *set, const char *name, struct connection **out)
{
    size_t count = 0;
    struct connection *own = connection_set_find(set, name);
    if (own && own->spec->driver->speaks_our_ids)
        out[count++] = own;
    for (size_t i = 0; i < set->elsewhere_count; i++)
        if (set->elsewhere[i]->spec->driver->speaks_our_ids &&
            strcmp(set->elsewhere[i]->spec->name, name) == 0)
            out[count++] = set->elsewhere[i];
    return count;
}

/* Nobody else knows who has a copy: every node must say that it has none any more. */
static struct error *
drop_copies(struct forward *f, const char *name, const char *handle)
{
    struct arena *arena = call_arena(f->call);
    size_t most = f->set->elsewhere_count + 1;
    struct connection **connections = arena_alloc(arena, most * sizeof(void *));
    struct drop *drops = arena_alloc(arena, most * sizeof *drops);
    struct parallel_call *calls = arena_alloc(arena, most * sizeof *calls);
    size_t count = list_connections(f->set, name, connections);
    struct error *unknown = replicator_remember(cluster_rows(f->router->cluster), name, handle);
    if (unknown) /* the snapshot's own node may come back, and nobody would tell it */
        return error_wrap(unknown, "the deletion of the snapshot cannot be remembered");
    for (size_t i = 0; i < count; i++) {
        drops[i] = (struct drop){connections[i], handle};
        calls[i] = (struct parallel_call){drop_copy, &drops[i], NULL};
    }
    parallel_calls_run(f->call, calls, count, parallel_calls_share_ns(f->call, 1));
    struct error *failure = NULL;
    for (size_t i = 0; i < count; i++) {
        if (failure)
            error_free(calls[i].error);
        else
            failure = calls[i].error;
    }
    return error_wrap(failure, "not all nodes have deleted their copies of the snapshot");
}

struct error *
snapshot_copies_run_lost(struct forward *f, const struct route *route, struct error *error)
{
    const char *name = route->own->spec->name;
    if (!is_deletion(f))
        return run_at_copy(f, name, route->handle, error);
    if (f->set->is_waiting) /* the snapshot's node may be a member */
        return error;
    error_free(error);
    return drop_copies(f, name, route->handle);
}

/* ---- lists ---- */

struct question {
    const struct merged_list *list;
    struct connection *connection;
    Skycap__V1__ListReplicasRequest request;
    Skycap__V1__ListReplicasReply reply;
};

static struct error *
ask(struct call *call, void *context)
{
    struct question *question = context;
    return forward_own(router_of(call), question->list->set, question->connection, call,
                       "skycap.v1.Replicator/List", &question->request.base, &question->reply.base);
}

/* The node of a place: NAME@HOME, or NAME on this node. */
static const char *
home_of(const struct connection_set *set, const struct connection *connection)
{
    const char *at = strrchr(connection->place, '@');
    return at ? at + 1 : set->home;
}

/* A token may come from another node, which has another name for the place. */
static bool
is_left_out(const struct merged_list *list, const struct connection *connection)
{
    const char *elsewhere = arena_print(call_arena(list->call), "%s@%s", connection->spec->name,
                                        home_of(list->set, connection));
    return merged_list_left_out(list, connection->place) || merged_list_left_out(list, elsewhere);
}

/* Whose own snapshots the list has: those of all nodes but the ones that were left out. */
static void
fill_homes(const struct merged_list *list, const char *name, struct connection **connections,
           size_t count, Skycap__V1__ListReplicasRequest *request)
{
    request->listed_homes = arena_alloc(call_arena(list->call), count * sizeof(char *));
    for (size_t i = 0; i < count; i++)
        if (strcmp(connections[i]->spec->name, name) == 0 && !is_left_out(list, connections[i]))
            request->listed_homes[request->n_listed_homes++] =
                (char *)home_of(list->set, connections[i]);
}

static size_t
list_all_connections(const struct connection_set *set, struct connection **out)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection && set->slots[i].connection->spec->driver->speaks_our_ids)
            out[count++] = set->slots[i].connection;
    for (size_t i = 0; i < set->elsewhere_count; i++)
        if (set->elsewhere[i]->spec->driver->speaks_our_ids)
            out[count++] = set->elsewhere[i];
    return count;
}

/* Returns the number of questions. */
static size_t
ask_all(const struct merged_list *list, const char *filter, const char *token, size_t most,
        struct question *questions)
{
    struct arena *arena = call_arena(list->call);
    const struct connection_set *set = list->set;
    size_t room = set->count + set->elsewhere_count, asked = 0;
    struct connection **connections = arena_alloc(arena, room * sizeof(void *));
    struct parallel_call *calls = arena_alloc(arena, room * sizeof *calls);
    struct global_id parts = {0};
    bool is_filtered = global_id_parse(ID_VOLUME, filter, &parts);
    size_t count = list_all_connections(set, connections);
    for (size_t i = 0; i < count; i++) {
        const char *name = connections[i]->spec->name;
        if (is_filtered && strcmp(name, parts.connection) != 0)
            continue;
        struct question *question = &questions[asked];
        *question = (struct question){list, connections[i]};
        skycap__v1__list_replicas_request__init(&question->request);
        skycap__v1__list_replicas_reply__init(&question->reply);
        question->request.after = (char *)token;
        question->request.limit = (uint32_t)most;
        question->request.of_volume = is_filtered ? (char *)parts.handle : "";
        fill_homes(list, name, connections, count, &question->request);
        calls[asked++] = (struct parallel_call){ask, question, NULL};
    }
    uint64_t share_ns = parallel_calls_share_ns(list->call, 1);
    parallel_calls_run(list->call, calls, asked, share_ns < ASK_NS ? share_ns : ASK_NS);
    for (size_t i = 0; i < asked; i++)
        error_free(calls[i].error); /* a node that does not answer has no copy that can be used */
    return asked;
}

static const char *
handle_of(const snapshot_info *info)
{
    return strrchr(info->snapshot->snapshot_id, '/') + 1;
}

/* The page is sorted. Several nodes may have copies of the same snapshot. */
static void
add_entry(struct list_page *page, snapshot_info *info)
{
    size_t at = page->count;
    if (!info->snapshot || !strchr(info->snapshot->snapshot_id, '/'))
        return;
    while (at && strcmp(handle_of(page->entries[at - 1]), handle_of(info)) > 0)
        at--;
    if (at && strcmp(((snapshot_info *)page->entries[at - 1])->snapshot->snapshot_id,
                     info->snapshot->snapshot_id) == 0)
        return;
    memmove(&page->entries[at + 1], &page->entries[at], (page->count - at) * sizeof(void *));
    page->entries[at] = info;
    page->count++;
}

struct error *
snapshot_copies_list(const struct merged_list *list, const char *filter, const char *token,
                     size_t most, struct list_page *out)
{
    struct arena *arena = call_arena(list->call);
    size_t room = list->set->count + list->set->elsewhere_count, total = 0;
    struct question *questions = arena_alloc(arena, room * sizeof *questions);
    size_t count = ask_all(list, filter, token, most, questions);
    bool has_more = false;
    for (size_t i = 0; i < count; i++) {
        total += questions[i].reply.n_snapshots;
        has_more |= questions[i].reply.has_more;
    }
    *out = (struct list_page){arena_alloc(arena, (total + 1) * sizeof(void *)), 0, ""};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < questions[i].reply.n_snapshots; j++)
            add_entry(out, questions[i].reply.snapshots[j]);
    if (out->count > most) {
        out->count = most;
        has_more = true;
    }
    if (has_more && out->count)
        out->next_token = arena_string(arena, handle_of(out->entries[out->count - 1]));
    return NULL;
}

/* ---- who has copies ---- */

static void
add_holder(snapshot_info *info, const char *node_id, struct arena *arena)
{
    Skycap__V1__SnapshotHolder *holder = arena_alloc(arena, sizeof *holder);
    skycap__v1__snapshot_holder__init(holder);
    holder->node_id = (char *)node_id;
    holder->state = "held";
    info->holders[info->n_holders++] = holder;
}

/* The snapshot's own node does not say it: the registry does. */
static void
read_holders(struct call *call, snapshot_info *info)
{
    struct arena *arena = call_arena(call);
    struct global_id parts;
    struct store_list list;
    if (!global_id_parse(ID_SNAPSHOT, info->snapshot->snapshot_id, &parts))
        return;
    const char *prefix = arena_print(arena, "holder/%s/%s/", parts.connection, parts.handle);
    struct error *error AUTO(error_cleanup) =
        store_list(cluster_rows(router_of(call)->cluster), prefix, NULL, 0, arena, &list);
    if (error)
        return;
    info->holders = arena_alloc(arena, list.count * sizeof(void *));
    info->n_holders = 0;
    for (size_t i = 0; i < list.count; i++)
        add_holder(info, list.entries[i].key + strlen(prefix), arena);
}

static bool
is_lost(const struct member_list *members, const char *node_id)
{
    for (size_t i = 0; i < members->count; i++)
        if (strcmp(members->items[i].id, node_id) == 0)
            return members->items[i].is_expired;
    return members->is_known;
}

struct error *
snapshot_copies_finish(struct call *call, snapshot_info *info)
{
    struct cluster *cluster = router_of(call)->cluster;
    if (!cluster)
        return NULL;
    if (info->is_replica)
        read_holders(call, info);
    struct member_list members = cluster_members(cluster, call_arena(call));
    for (size_t i = 0; i < info->n_holders; i++)
        if (is_lost(&members, info->holders[i]->node_id))
            info->holders[i]->state = "lost";
    return NULL;
}
