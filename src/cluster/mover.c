/* SPDX-License-Identifier: Apache-2.0 */
/* Moves: see mover.h. The other nodes serve skycap.v1.Mover (csi/mover.c). */
#include "cluster/mover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/member_rows.h"
#include "cluster/node_calls.h"
#include "message/message_bytes.h"
#include "proto/move.rpc.h"
#include "volumes/handle.h"
#include "volumes/move.h"

#define CALL_NS UINT64_C(15000000000)
#define ASK_NS UINT64_C(5000000000)
#define PAGE 500 /* rows of the registry that are read at once */

struct mover {
    struct move_cluster moves;
    struct cluster *cluster;
    struct owners *owners;
    struct store *own; /* of the engine */
    struct node_calls calls;
    bool has_announced; /* since the start; owned by renew */
};

/* ---- nodes ---- */

/* A node that was forgotten is not registered, but its id is in this node's store (rule 11). */
static struct error *
find_forgotten(const struct mover *mover, const char *handle, const char *home, struct arena *arena,
               const char **node_id)
{
    struct name_set known AUTO(name_set_clear) = {0};
    struct error *error = member_rows_list_own(mover->own, &known);
    for (size_t i = 0; !error && i < known.count; i++) {
        char its[HANDLE_HOME_SIZE];
        handle_print_home(known.names[i], its);
        if (strcmp(its, home) != 0)
            continue;
        *node_id = arena_string(arena, known.names[i]);
        return NULL;
    }
    return error ? error
                 : error_new(CODE_UNAVAILABLE, "the node of \"%s\" is not registered", handle);
}

static struct error *
find_home(void *context, const char *key, struct arena *arena, const char **node_id)
{
    const struct mover *mover = context;
    char home[HANDLE_HOME_SIZE];
    struct member_list members = cluster_members(mover->cluster, arena);
    if (!handle_read_key(key, home))
        return error_new(CODE_FAILED_PRECONDITION,
                         "\"%s\" was made before its node joined the cluster, and does not tell "
                         "that node",
                         key);
    for (size_t i = 0; i < members.count; i++) {
        if (strcmp(members.items[i].home, home) != 0)
            continue;
        *node_id = members.items[i].id;
        return NULL;
    }
    return find_forgotten(mover, key, home, arena, node_id);
}

static bool
is_lost(void *context, const char *node_id)
{
    const struct mover *mover = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(mover->cluster, &arena);
    const struct member *member = member_list_find(&members, node_id);
    return members.is_known && (!member || member->is_expired);
}

static struct move_presence
presence(void *context)
{
    const struct mover *mover = context;
    return cluster_presence(mover->cluster);
}

/* ---- calls ---- */

/* A copy in the arena. INTERNAL: it is no row of this volume. */
static struct error *
read_record(const ProtobufCBinaryData *bytes, const char *key, struct arena *arena,
            volume_record **out)
{
    size_t size = strcspn(key, "@");
    void *own = arena_copy(arena, bytes->data, bytes->len);
    *out = (volume_record *)message_bytes_unpack(&skycap__records__volume_record__descriptor, own,
                                                 bytes->len, arena);
    if (*out && strlen((*out)->handle) == size && memcmp((*out)->handle, key, size) == 0)
        return NULL;
    return error_new(CODE_INTERNAL, "the other node has answered with another volume");
}

static struct error *
describe(void *context, const char *node_id, const char *key, struct arena *arena,
         struct move_offer *out)
{
    const struct mover *mover = context;
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__DescribeMoveRequest request = SKYCAP__V1__DESCRIBE_MOVE_REQUEST__INIT;
    Skycap__V1__DescribeMoveReply reply = SKYCAP__V1__DESCRIBE_MOVE_REPLY__INIT;
    request.handle = (char *)key;
    struct node_question question = {node_id, SKYCAP_V1_MOVER_DESCRIBE, &request.base, CALL_NS};
    struct error *error = node_calls_ask(&mover->calls, &question, &call, &reply.base);
    if (!error)
        error = read_record(&reply.record, key, arena, &out->record);
    if (error)
        return error;
    out->is_in_use = reply.in_use;
    out->has_differences = reply.has_differences;
    out->used_bytes = reply.used_bytes;
    return NULL;
}

static struct error *
begin(void *context, const char *node_id, const char *key, struct arena *arena, volume_record **out)
{
    const struct mover *mover = context;
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__BeginMoveRequest request = SKYCAP__V1__BEGIN_MOVE_REQUEST__INIT;
    Skycap__V1__BeginMoveReply reply = SKYCAP__V1__BEGIN_MOVE_REPLY__INIT;
    request.handle = (char *)key;
    request.to = (char *)cluster_node_id(mover->cluster);
    struct node_question question = {node_id, SKYCAP_V1_MOVER_BEGIN, &request.base, CALL_NS};
    struct error *error = node_calls_ask(&mover->calls, &question, &call, &reply.base);
    if (!error)
        error = read_record(&reply.record, key, arena, out);
    if (!error && !(*out)->epoch)
        error = error_new(CODE_INTERNAL, "the other node has begun a move without an epoch");
    return error;
}

static struct error *
give_up(void *context, const char *node_id, const char *key, uint64_t epoch)
{
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__GiveUpMoveRequest request = SKYCAP__V1__GIVE_UP_MOVE_REQUEST__INIT;
    Skycap__V1__GiveUpMoveReply reply = SKYCAP__V1__GIVE_UP_MOVE_REPLY__INIT;
    request.handle = (char *)key;
    request.epoch = epoch;
    struct node_question question = {node_id, SKYCAP_V1_MOVER_GIVE_UP, &request.base, CALL_NS};
    return node_calls_ask(&((const struct mover *)context)->calls, &question, &call, &reply.base);
}

static struct error *
settle(void *context, const char *node_id, const char *key)
{
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__SettleMoveRequest request = SKYCAP__V1__SETTLE_MOVE_REQUEST__INIT;
    Skycap__V1__SettleMoveReply reply = SKYCAP__V1__SETTLE_MOVE_REPLY__INIT;
    request.handle = (char *)key;
    struct node_question question = {node_id, SKYCAP_V1_MOVER_SETTLE, &request.base, ASK_NS};
    return node_calls_ask(&((const struct mover *)context)->calls, &question, &call, &reply.base);
}

static struct error *
ask(void *context, const char *node_id, const char *key, bool is_gone, struct move_answer *out)
{
    struct call *call AUTO(node_calls_end) = NULL;
    Skycap__V1__AskMoveRequest request = SKYCAP__V1__ASK_MOVE_REQUEST__INIT;
    Skycap__V1__AskMoveReply reply = SKYCAP__V1__ASK_MOVE_REPLY__INIT;
    request.handle = (char *)key;
    request.is_gone = is_gone;
    struct node_question question = {node_id, SKYCAP_V1_MOVER_ASK, &request.base, ASK_NS};
    struct error *error =
        node_calls_ask(&((const struct mover *)context)->calls, &question, &call, &reply.base);
    if (error)
        return error;
    *out = (struct move_answer){
        .has_row = reply.has_row, .epoch = reply.epoch, .is_lost = reply.is_lost};
    if (strlen(reply.home) == sizeof out->home - 1)
        memcpy(out->home, reply.home, sizeof out->home);
    else /* an older version, where such volumes did not move */
        handle_print_home(node_id, out->home);
    return NULL;
}

static void
count(void *context, const struct move_measure *measure)
{
    const struct mover *mover = context;
    cluster_count_move(mover->cluster, measure);
}

static void
note_announced(struct mover *mover)
{
    if (!mover->has_announced)
        cluster_end_announcement(mover->cluster);
    mover->has_announced = true;
}

/* Every node that may have volumes of the connection is a member: rule 11. */
static struct error *
renew(void *context)
{
    struct mover *mover = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(mover->cluster, &arena);
    const struct ownership *owners = mover->moves.owners;
    struct error *error = NULL;
    for (size_t i = 0; !error && i < members.count; i++)
        if (member_has_connection(&members.items[i], mover->calls.connection))
            error = owners->add_member(owners->context, members.items[i].id);
    if (!error)
        error = owners_renew(mover->owners);
    if (!error)
        note_announced(mover);
    return error;
}

static struct error *
walk_page(const struct mover *mover, char after[BACKEND_HANDLE_SIZE], bool *has_more,
          struct error *(*take)(void *taker, const char *key, const struct owner *owner),
          void *taker)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct owner_list list = {0};
    struct error *error = owners_list(mover->owners, after[0] ? after : NULL, PAGE, &arena, &list);
    for (size_t i = 0; !error && i < list.count; i++) {
        snprintf(after, BACKEND_HANDLE_SIZE, "%s", list.entries[i].handle);
        error = take(taker, list.entries[i].handle, &list.entries[i].owner);
    }
    *has_more = !error && list.has_more;
    return error;
}

static struct error *
walk(void *context, struct error *(*take)(void *taker, const char *key, const struct owner *owner),
     void *taker)
{
    char after[BACKEND_HANDLE_SIZE] = "";
    bool has_more = true;
    struct error *error = NULL;
    while (!error && has_more)
        error = walk_page(context, after, &has_more, take, taker);
    return error;
}

/* ---- life ---- */

/* Nodes that are not registered any more are members, too. */
static void
note_members(const struct mover *mover, const struct log *log)
{
    struct name_set known AUTO(name_set_clear) = {0};
    struct error *error AUTO(error_cleanup) = member_rows_list_own(mover->own, &known);
    for (size_t i = 0; i < known.count; i++)
        cluster_note_member(mover->cluster, known.names[i], mover->calls.connection);
    if (error)
        log_error(log, "the members of the cluster cannot be read from the store",
                  LOG_TEXT("connection", mover->calls.connection),
                  LOG_TEXT("error", error->message));
}

struct mover *
mover_new(struct cluster *cluster, const char *connection, struct engine *engine,
          struct runtime *runtime)
{
    struct mover *mover = memory_zeroed(sizeof *mover);
    mover->cluster = cluster_share(cluster);
    mover->own = engine->store;
    cluster_begin_announcement(cluster);
    mover->calls = (struct node_calls){cluster, memory_string(connection), runtime};
    note_members(mover, engine->log);
    mover->owners = owners_new(&(struct owners_options){
        .rows = cluster_rows(cluster),
        .own = engine->store,
        .connection = mover->calls.connection,
        .node_id = cluster_node_id(cluster),
        .claims = move_claims(engine),
        .log = engine->log,
    });
    mover->moves = (struct move_cluster){
        .owners = owners_interface(mover->owners),
        .renew = renew,
        .walk = walk,
        .find_home = find_home,
        .is_lost = is_lost,
        .presence = presence,
        .describe = describe,
        .begin = begin,
        .give_up = give_up,
        .settle = settle,
        .ask = ask,
        .count = count,
        .context = mover,
    };
    return mover;
}

void
mover_free(struct mover *mover)
{
    if (!mover)
        return;
    note_announced(mover); /* nobody waits for it any more */
    owners_free(mover->owners);
    cluster_release(mover->cluster);
    free(mover->calls.connection);
    free(mover);
}

const struct move_cluster *
mover_moves(const struct mover *mover)
{
    return &mover->moves;
}

struct owners *
mover_owners(const struct mover *mover)
{
    return mover->owners;
}
