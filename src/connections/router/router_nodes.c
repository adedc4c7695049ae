/* SPDX-License-Identifier: Apache-2.0 */
/* The router: skycap.v1.Nodes, the nodes of the cluster: how each of them is, and leaving it. */
#include <string.h>

#include "cluster/cluster.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/router_internal.h"
#include "message/message_map.h"

#define ASK_NS UINT64_C(2000000000)

typedef Skycap__V1__NodeInfo node_info;

#define STATE(name) SKYCAP__V1__NODE_INFO__STATE__##name

/* ---- one node ---- */

static node_info *
new_info(const struct router *router, const struct member *member, struct arena *arena)
{
    node_info *info = arena_alloc(arena, sizeof *info);
    struct text_map topology = {0};
    const size_t skip = sizeof CLUSTER_TOPOLOGY - 1;
    skycap__v1__node_info__init(info);
    info->id = (char *)member->id;
    info->address = (char *)member->address;
    info->is_this = strcmp(member->id, router->node_id) == 0;
    info->is_draining = text_map_find(&member->attributes, CLUSTER_DRAINING) != NULL;
    if (member->is_expired && !member->is_missing) {
        info->last_seen = arena_alloc(arena, sizeof *info->last_seen);
        google__protobuf__timestamp__init(info->last_seen);
        info->last_seen->seconds = member->seen_ms / 1000;
    }
    for (size_t i = 0; i < member->attributes.count; i++)
        if (strncmp(member->attributes.pairs[i].key, CLUSTER_TOPOLOGY, skip) == 0)
            text_map_set(&topology, arena, member->attributes.pairs[i].key + skip,
                         member->attributes.pairs[i].value);
    message_map_write(&topology, arena, &skycap__v1__node_info__topology_entry__descriptor,
                      &info->topology, &info->n_topology);
    return info;
}

struct question {
    struct router *router;
    const struct member *member;
    node_info *info;
};

static void
fill(node_info *info, const Skycap__V1__DescribeNodeReply *reply)
{
    info->state = reply->is_ready ? STATE(READY) : STATE(NOT_READY);
    info->trouble = reply->trouble;
    info->version = reply->version;
    info->available_bytes = reply->available_bytes;
    info->total_bytes = reply->total_bytes;
    info->changes = reply->changes;
}

static struct error *
ask_self(struct call *call, const struct question *question)
{
    Skycap__V1__DescribeNodeRequest request = SKYCAP__V1__DESCRIBE_NODE_REQUEST__INIT;
    Skycap__V1__DescribeNodeReply *reply = arena_alloc(call_arena(call), sizeof *reply);
    skycap__v1__describe_node_reply__init(reply);
    struct error *error = call_delegate(call, SKYCAP_V1_PEER_DESCRIBE, &router_peer_handlers,
                                        question->router, &request, reply);
    if (!error)
        fill(question->info, reply);
    return error;
}

static struct error *
ask_node(struct call *call, void *context)
{
    struct question *question = context;
    Skycap__V1__DescribeNodeRequest request = SKYCAP__V1__DESCRIBE_NODE_REQUEST__INIT;
    Skycap__V1__DescribeNodeReply *reply;
    struct remote *remote;
    if (question->info->is_this)
        return ask_self(call, question);
    struct error *error = cluster_remote(question->router->cluster, question->member, &remote);
    if (error)
        return error;
    error = remote_ask(remote, call, SKYCAP_V1_PEER_DESCRIBE, &request.base, ASK_NS, &reply);
    if (!error)
        fill(question->info, reply);
    remote_release(remote);
    return error;
}

/* ---- all of them ---- */

/* Nodes that are lost are not asked: each would take its time. */
static size_t
make_questions(struct router *router, const struct member_list *members, struct arena *arena,
               struct question *questions, Skycap__V1__ListNodesReply *reply)
{
    size_t count = 0;
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->items[i];
        node_info *info = new_info(router, member, arena);
        reply->nodes[reply->n_nodes++] = info;
        if (!member->is_expired) {
            questions[count++] = (struct question){router, member, info};
            continue;
        }
        info->state = STATE(LOST);
        info->trouble =
            member->is_missing
                ? arena_print(arena,
                              "it is not registered any more: the registry has lost its data, or "
                              "the entry was removed. Start it, or: skycap node forget %s",
                              member->id)
                : "its registration has expired";
    }
    return count;
}

static struct error *
list(struct call *call, const Skycap__V1__ListNodesRequest *request,
     Skycap__V1__ListNodesReply *reply)
{
    (void)request;
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct member_list members = cluster_members(router->cluster, arena);
    if (!members.is_known)
        return error_new(CODE_UNAVAILABLE, "the registry has not answered yet");
    reply->nodes = arena_alloc(arena, members.count * sizeof *reply->nodes);
    struct question *questions = arena_alloc(arena, members.count * sizeof *questions);
    size_t count = make_questions(router, &members, arena, questions, reply);
    struct parallel_call *calls = arena_alloc(arena, count * sizeof *calls);
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct parallel_call){ask_node, &questions[i], NULL};
    parallel_calls_run(call, calls, count, parallel_calls_share_ns(call, 1));
    for (size_t i = 0; i < count; i++) {
        struct error *error AUTO(error_cleanup) = calls[i].error;
        if (!error)
            continue;
        questions[i].info->state = STATE(UNREACHABLE);
        questions[i].info->trouble = arena_string(arena, error->message);
    }
    return NULL;
}

/* ---- drain ---- */

static struct error *
ask_to_drain(struct call *call, const struct member *member, bool is_draining)
{
    Skycap__V1__SetDrainingRequest request = SKYCAP__V1__SET_DRAINING_REQUEST__INIT;
    Skycap__V1__SetDrainingReply *reply;
    struct remote *remote;
    request.is_draining = is_draining;
    struct error *error = cluster_remote(router_of(call)->cluster, member, &remote);
    if (error)
        return error;
    error = remote_ask(remote, call, SKYCAP_V1_PEER_SET_DRAINING, &request.base, ASK_NS, &reply);
    remote_release(remote);
    return error;
}

static struct error *
drain(struct call *call, const Skycap__V1__DrainNodeRequest *request,
      Skycap__V1__DrainNodeReply *reply)
{
    (void)reply;
    struct router *router = router_of(call);
    if (strcmp(request->node_id, router->node_id) == 0)
        return router_set_draining(router, !request->undo);
    struct member_list members = cluster_members(router->cluster, call_arena(call));
    for (size_t i = 0; i < members.count; i++)
        if (strcmp(members.items[i].id, request->node_id) == 0)
            return ask_to_drain(call, &members.items[i], !request->undo);
    return error_new(CODE_NOT_FOUND, "there is no node \"%s\" in the cluster", request->node_id);
}

const struct skycap_v1_nodes router_nodes_handlers = {
    .list = {list},
    .drain = {drain},
    .forget = {router_forget_node},
};
