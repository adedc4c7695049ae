/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to other nodes: see node_calls.h. */
#include "cluster/node_calls.h"

#include <string.h>

struct error *
node_calls_find(const struct node_calls *calls, const char *node_id, struct remote **out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(calls->cluster, &arena);
    const struct member *member = member_list_find(&members, node_id);
    if (!member)
        return error_new(CODE_UNAVAILABLE, "node \"%s\" is not registered", node_id);
    if (member->is_expired)
        return error_new(CODE_UNAVAILABLE, "node \"%s\" is lost", node_id);
    return cluster_remote(calls->cluster, member, out);
}

struct error *
node_calls_ask(const struct node_calls *calls, const struct node_question *question,
               struct call **call, ProtobufCMessage *reply)
{
    struct remote *remote;
    struct error *error = node_calls_find(calls, question->node_id, &remote);
    if (error)
        return error;
    *call = call_new_detached(calls->runtime, question->timeout_ns);
    struct remote_call what = {calls->connection, question->method, question->request,
                               question->timeout_ns};
    error = remote_call(remote, *call, &what, reply);
    remote_release(remote);
    return error;
}

void
node_calls_end(struct call **call)
{
    if (*call)
        call_free_detached(*call);
}
