/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of snapshots: see replicator.h. The other nodes serve skycap.v1.Replicator
 * (csi/replicator.c). The registry has a row `holder/CONNECTION/HANDLE/NODE` for each copy; its
 * value is empty. The rows are only hints: a node that is asked in vain is passed over. The row
 * `deleted/CONNECTION/HANDLE` says that a snapshot was deleted, for nodes that could not be told.
 */
#include "cluster/replicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/node_calls.h"
#include "cluster/owner_rows.h"
#include "message/message_bytes.h"
#include "proto/cluster.rpc.h"
#include "proto/replica.rpc.h"

#define CALL_NS UINT64_C(15000000000)
#define ASK_NS UINT64_C(5000000000)
#define ROOM_NS UINT64_C(2000000000)
#define DELETED_PAGE 256
#define DELETED_KEY_SIZE 512
/* How long it is remembered that a snapshot was deleted. */
#define REMEMBERED_NS (INT64_C(30) * 24 * 3600 * 1000000000)
#define ZONE CLUSTER_TOPOLOGY "topology.kubernetes.io/zone"

struct replicator {
    struct replica_cluster replicas;
    struct node_calls calls;
    struct replica_figures figures; /* told last */
};

/* ---- the registry ---- */

static const char *
holder_key(const struct replicator *replicator, const char *handle, const char *node_id,
           struct arena *arena)
{
    return arena_print(arena, "holder/%s/%s/%s", replicator->calls.connection, handle, node_id);
}

static struct error *
announce(void *context, const char *handle, bool is_held)
{
    static const uint8_t nothing[1];
    const struct replicator *replicator = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *own = cluster_node_id(replicator->calls.cluster);
    struct store_change change = {holder_key(replicator, handle, own, &arena),
                                  is_held ? nothing : NULL, 0, STORE_ANY};
    return store_write(cluster_rows(replicator->calls.cluster), &change, 1, NULL);
}

static struct error *
holders(void *context, const char *handle, struct arena *arena, const char *const **ids,
        size_t *count)
{
    const struct replicator *replicator = context;
    const char *prefix = holder_key(replicator, handle, "", arena);
    struct store_list list;
    struct error *error =
        store_list(cluster_rows(replicator->calls.cluster), prefix, NULL, 0, arena, &list);
    *count = 0;
    if (error)
        return error;
    const char **found = arena_alloc(arena, list.count * sizeof *found);
    for (size_t i = 0; i < list.count; i++)
        found[i] = list.entries[i].key + strlen(prefix);
    *count = list.count;
    *ids = found;
    return NULL;
}

static struct error *
incarnation(void *context, struct arena *arena, const char **out)
{
    const struct replicator *replicator = context;
    char text[INCARNATION_SIZE];
    struct error *error =
        owner_rows_read_incarnation(cluster_rows(replicator->calls.cluster), text);
    *out = error ? "" : arena_string(arena, text);
    return error;
}

/* ---- snapshots that were deleted ---- */

static const char *
deleted_prefix(const char *connection, struct arena *arena)
{
    return arena_print(arena, "deleted/%s/", connection);
}

/* The value is the time of the deletion. */
struct error *
replicator_remember(struct store *rows, const char *connection, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *time = arena_print(&arena, "%jd", (intmax_t)clock_unix_ns());
    const char *key = arena_print(&arena, "%s%s", deleted_prefix(connection, &arena), handle);
    struct store_change change = {key, (const uint8_t *)time, strlen(time), STORE_ANY};
    return store_write(rows, &change, 1, NULL);
}

static struct error *
remember(void *context, const char *handle)
{
    const struct replicator *replicator = context;
    return replicator_remember(cluster_rows(replicator->calls.cluster),
                               replicator->calls.connection, handle);
}

static struct error *
is_deleted(void *context, const char *handle, bool *out)
{
    const struct replicator *replicator = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry entry;
    const char *prefix = deleted_prefix(replicator->calls.connection, &arena);
    return store_find(cluster_rows(replicator->calls.cluster),
                      arena_print(&arena, "%s%s", prefix, handle), &arena, &entry, out);
}

static bool
is_old(const struct store_entry *entry, struct arena *arena)
{
    const char *time = arena_copy(arena, entry->value, entry->value_size);
    return clock_unix_ns() - strtoll(time, NULL, 10) > REMEMBERED_NS;
}

static struct error *
take_deleted(struct store *rows, const struct store_entry *entry, const char *handle,
             struct error *(*take)(void *taker, const char *handle), void *taker,
             struct arena *arena)
{
    struct error *error = take(taker, handle);
    if (error || !is_old(entry, arena))
        return error;
    struct store_change change = {.key = entry->key, .expected = STORE_ANY};
    return store_write(rows, &change, 1, NULL);
}

static struct error *
walk_deleted(void *context, struct error *(*take)(void *taker, const char *handle), void *taker)
{
    const struct replicator *replicator = context;
    struct store *rows = cluster_rows(replicator->calls.cluster);
    struct arena own AUTO(arena_clear), arena AUTO(arena_clear);
    arena_init(&own, NULL, 0, SIZE_MAX);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *prefix = deleted_prefix(replicator->calls.connection, &own);
    char after[DELETED_KEY_SIZE] = "";
    struct store_list list = {.has_more = true};
    struct error *error = NULL;
    while (!error && list.has_more) {
        arena_clear(&arena);
        error = store_list(rows, prefix, after[0] ? after : NULL, DELETED_PAGE, &arena, &list);
        for (size_t i = 0; !error && i < list.count; i++) {
            const struct store_entry *entry = &list.entries[i];
            error = take_deleted(rows, entry, entry->key + strlen(prefix), take, taker, &arena);
            if (snprintf(after, sizeof after, "%s", entry->key) >= (int)sizeof after)
                list.has_more = false; /* none of ours is so long */
        }
    }
    return error;
}

/* ---- the members ---- */

static enum replica_presence
presence(void *context, const char *node_id)
{
    const struct replicator *replicator = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(replicator->calls.cluster, &arena);
    const struct member *member = member_list_find(&members, node_id);
    if (!members.is_known)
        return REPLICA_NODE_LOST;
    if (!member)
        return REPLICA_NODE_FORGOTTEN;
    if (!member->is_expired)
        return REPLICA_NODE_READY;
    return clock_unix_ns() / 1000000 - member->seen_ms > REPLICA_LOST_MS ? REPLICA_NODE_LOST_LONG
                                                                         : REPLICA_NODE_LOST;
}

/* -1: it does not answer. */
static int64_t
ask_room(const struct replicator *replicator, const struct member *member)
{
    struct remote *remote;
    Skycap__V1__DescribeNodeRequest request = SKYCAP__V1__DESCRIBE_NODE_REQUEST__INIT;
    Skycap__V1__DescribeNodeReply *reply;
    struct error *error AUTO(error_cleanup) =
        cluster_remote(replicator->calls.cluster, member, &remote);
    if (error)
        return -1;
    struct call *call = call_new_detached(replicator->calls.runtime, ROOM_NS);
    error = remote_ask(remote, call, SKYCAP_V1_PEER_DESCRIBE, &request.base, ROOM_NS, &reply);
    int64_t room = error || !reply->is_ready ? -1 : reply->available_bytes;
    call_free_detached(call);
    remote_release(remote);
    return room;
}

static bool
can_take_copies(const struct replicator *replicator, const struct member *member)
{
    return !member->is_expired &&
           strcmp(member->id, cluster_node_id(replicator->calls.cluster)) != 0 &&
           member_has_connection(member, replicator->calls.connection) &&
           !text_map_find(&member->attributes, CLUSTER_DRAINING);
}

static struct error *
candidates(void *context, struct arena *arena, struct replica_candidate **out, size_t *count)
{
    const struct replicator *replicator = context;
    struct member_list members = cluster_members(replicator->calls.cluster, arena);
    *count = 0;
    *out = arena_alloc(arena, members.count * sizeof **out);
    if (!members.is_known)
        return error_new(CODE_UNAVAILABLE, "the registry has not answered yet");
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        const char *zone = text_map_find(&member->attributes, ZONE);
        int64_t room = can_take_copies(replicator, member) ? ask_room(replicator, member) : -1;
        if (room >= 0)
            (*out)[(*count)++] = (struct replica_candidate){
                .node_id = member->id, .zone = zone ? zone : "", .available_bytes = room};
    }
    return NULL;
}

/* ---- calls ---- */

static struct error *
ask_for(const void *context, const struct node_question *question, struct call **call,
        ProtobufCMessage *reply)
{
    return node_calls_ask(&((const struct replicator *)context)->calls, question, call, reply);
}

/* A copy in the arena. INTERNAL: it is no row of this snapshot. */
static struct error *
read_record(const ProtobufCBinaryData *bytes, const char *handle, struct arena *arena,
            snapshot_record **out)
{
    void *own = arena_copy(arena, bytes->data, bytes->len);
    *out = (snapshot_record *)message_bytes_unpack(&skycap__records__snapshot_record__descriptor,
                                                   own, bytes->len, arena);
    if (*out && strcmp((*out)->handle, handle) == 0 && (*out)->size_bytes >= 0 &&
        strlen((*out)->source_handle) < BACKEND_HANDLE_SIZE)
        return NULL;
    return error_new(CODE_INTERNAL, "the other node has answered with another snapshot");
}

static struct error *
receive(void *context, const char *node_id, const char *handle)
{
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__ReceiveReplicaRequest request = SKYCAP__V1__RECEIVE_REPLICA_REQUEST__INIT;
    Skycap__V1__ReceiveReplicaReply reply = SKYCAP__V1__RECEIVE_REPLICA_REPLY__INIT;
    request.handle = (char *)handle;
    struct node_question question = {node_id, SKYCAP_V1_REPLICATOR_RECEIVE, &request.base, CALL_NS};
    return ask_for(context, &question, &call, &reply.base);
}

static struct error *
enroll(void *context, const char *node_id, const char *handle, enum replica_state state,
       struct arena *arena, snapshot_record **out)
{
    const struct replicator *replicator = context;
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__EnrollReplicaRequest request = SKYCAP__V1__ENROLL_REPLICA_REQUEST__INIT;
    Skycap__V1__EnrollReplicaReply reply = SKYCAP__V1__ENROLL_REPLICA_REPLY__INIT;
    request.handle = (char *)handle;
    request.node_id = (char *)cluster_node_id(replicator->calls.cluster);
    request.state = (Skycap__V1__ReplicaState)state;
    struct node_question question = {node_id, SKYCAP_V1_REPLICATOR_ENROLL, &request.base, ASK_NS};
    struct error *error = ask_for(context, &question, &call, &reply.base);
    *out = NULL;
    return error || state == REPLICA_NONE ? error : read_record(&reply.record, handle, arena, out);
}

static struct error *
describe(void *context, const char *node_id, const char *handle, struct arena *arena,
         snapshot_record **out)
{
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__DescribeReplicaRequest request = SKYCAP__V1__DESCRIBE_REPLICA_REQUEST__INIT;
    Skycap__V1__DescribeReplicaReply reply = SKYCAP__V1__DESCRIBE_REPLICA_REPLY__INIT;
    request.handle = (char *)handle;
    struct node_question question = {node_id, SKYCAP_V1_REPLICATOR_DESCRIBE, &request.base, ASK_NS};
    struct error *error = ask_for(context, &question, &call, &reply.base);
    return error ? error : read_record(&reply.record, handle, arena, out);
}

static struct error *
drop(void *context, const char *node_id, const char *handle)
{
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__DropReplicaRequest request = SKYCAP__V1__DROP_REPLICA_REQUEST__INIT;
    Skycap__V1__DropReplicaReply reply = SKYCAP__V1__DROP_REPLICA_REPLY__INIT;
    request.handle = (char *)handle;
    struct node_question question = {node_id, SKYCAP_V1_REPLICATOR_DROP, &request.base, ASK_NS};
    return ask_for(context, &question, &call, &reply.base);
}

static struct error *
wrong_count(const char *node_id)
{
    return error_new(CODE_INTERNAL, "node \"%s\" has not answered for every snapshot", node_id);
}

static struct error *
check(void *context, const char *node_id, const char *const *handles, size_t count,
      enum replica_fate *fates)
{
    const struct replicator *replicator = context;
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__CheckReplicasRequest request = SKYCAP__V1__CHECK_REPLICAS_REQUEST__INIT;
    Skycap__V1__CheckReplicasReply reply = SKYCAP__V1__CHECK_REPLICAS_REPLY__INIT;
    request.node_id = (char *)cluster_node_id(replicator->calls.cluster);
    request.handles = (char **)handles;
    request.n_handles = count;
    struct node_question question = {node_id, SKYCAP_V1_REPLICATOR_CHECK, &request.base, CALL_NS};
    struct error *error = ask_for(context, &question, &call, &reply.base);
    if (!error && reply.n_fates != count)
        error = wrong_count(node_id);
    for (size_t i = 0; i < count && !error; i++)
        fates[i] = (enum replica_fate)reply.fates[i];
    return error;
}

static struct error *
ask(void *context, const char *node_id, const char *const *handles, size_t count,
    enum replica_state *states)
{
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__AskReplicasRequest request = SKYCAP__V1__ASK_REPLICAS_REQUEST__INIT;
    Skycap__V1__AskReplicasReply reply = SKYCAP__V1__ASK_REPLICAS_REPLY__INIT;
    request.handles = (char **)handles;
    request.n_handles = count;
    struct node_question question = {node_id, SKYCAP_V1_REPLICATOR_ASK, &request.base, CALL_NS};
    struct error *error = ask_for(context, &question, &call, &reply.base);
    if (!error && reply.n_states != count)
        error = wrong_count(node_id);
    for (size_t i = 0; i < count && !error; i++)
        states[i] = (enum replica_state)reply.states[i];
    return error;
}

/* ---- metrics ---- */

/* Called by one thread. The cluster has the sum of all connections. */
static void
tell(void *context, const struct replica_figures *figures)
{
    struct replicator *replicator = context;
    cluster_count_replicas(replicator->calls.cluster, &replicator->figures, figures);
    replicator->figures = *figures;
}

static void
count_received(void *context, uint64_t bytes)
{
    cluster_count_replica_bytes(((const struct replicator *)context)->calls.cluster, bytes);
}

/* ---- life ---- */

struct replicator *
replicator_new(struct cluster *cluster, const char *connection, struct runtime *runtime)
{
    struct replicator *replicator = memory_zeroed(sizeof *replicator);
    replicator->calls =
        (struct node_calls){cluster_share(cluster), memory_string(connection), runtime};
    replicator->replicas = (struct replica_cluster){
        .announce = announce,
        .holders = holders,
        .remember = remember,
        .is_deleted = is_deleted,
        .walk_deleted = walk_deleted,
        .incarnation = incarnation,
        .presence = presence,
        .candidates = candidates,
        .receive = receive,
        .enroll = enroll,
        .check = check,
        .describe = describe,
        .drop = drop,
        .ask = ask,
        .tell = tell,
        .count_received = count_received,
        .context = replicator,
    };
    return replicator;
}

void
replicator_free(struct replicator *replicator)
{
    if (!replicator)
        return;
    cluster_release(replicator->calls.cluster);
    free(replicator->calls.connection);
    free(replicator);
}

const struct replica_cluster *
replicator_replicas(const struct replicator *replicator)
{
    return &replicator->replicas;
}
