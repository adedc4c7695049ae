/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs the scheduled drills: see drill_turns.h. */
#include "cluster/drill_turns.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/node_calls.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)

struct drill_turns {
    atomic_uint references;
    char *node_id;
    bool is_in_cluster;

    pthread_mutex_t lock; /* of the store, also while it is used */
    struct store *store;  /* NULL: stopped */

    pthread_mutex_t names;   /* of what follows */
    struct cluster *cluster; /* a reference; NULL: not yet, or none */
    char *connection;        /* NULL: none */
};

struct drill_turns *
drill_turns_new(struct store *store, const char *node_id, bool is_in_cluster)
{
    struct drill_turns *turns = memory_zeroed(sizeof *turns);
    atomic_init(&turns->references, 1);
    turns->node_id = memory_string(node_id);
    turns->is_in_cluster = is_in_cluster;
    pthread_mutex_init(&turns->lock, NULL);
    pthread_mutex_init(&turns->names, NULL);
    turns->store = store;
    return turns;
}

struct drill_turns *
drill_turns_share(struct drill_turns *turns)
{
    atomic_fetch_add_explicit(&turns->references, 1, memory_order_relaxed);
    return turns;
}

void
drill_turns_release(struct drill_turns *turns)
{
    if (!turns || atomic_fetch_sub_explicit(&turns->references, 1, memory_order_acq_rel) != 1)
        return;
    if (turns->cluster)
        cluster_release(turns->cluster);
    pthread_mutex_destroy(&turns->lock);
    pthread_mutex_destroy(&turns->names);
    free(turns->node_id);
    free(turns->connection);
    free(turns);
}

void
drill_turns_join(struct drill_turns *turns, struct cluster *cluster)
{
    pthread_mutex_lock(&turns->names);
    if (!turns->cluster)
        turns->cluster = cluster_share(cluster);
    pthread_mutex_unlock(&turns->names);
}

void
drill_turns_set_connection(struct drill_turns *turns, const char *connection)
{
    if (!turns)
        return;
    pthread_mutex_lock(&turns->names);
    free(turns->connection);
    turns->connection = connection ? memory_string(connection) : NULL;
    pthread_mutex_unlock(&turns->names);
}

void
drill_turns_stop(struct drill_turns *turns)
{
    if (!turns)
        return;
    pthread_mutex_lock(&turns->lock);
    turns->store = NULL;
    pthread_mutex_unlock(&turns->lock);
}

/* ---- the row ---- */

struct drill_row {
    int64_t success_ns, tried_ns;
    const char *node;
    uint64_t revision;
};

static const char *
row_of(const char *repository, struct arena *arena)
{
    return arena_print(arena, "drill/%s", repository);
}

/* A row that cannot be read counts as none. */
static struct error *
read_turn(struct drill_turns *turns, const char *repository, struct arena *arena,
          struct drill_row *out)
{
    struct store_entry entry;
    bool is_there = false;
    *out = (struct drill_row){.node = "", .revision = STORE_ABSENT};
    struct error *error =
        store_find(turns->store, row_of(repository, arena), arena, &entry, &is_there);
    if (error || !is_there)
        return error;
    const char *text = arena_copy(arena, entry.value, entry.value_size);
    char *end;
    out->revision = entry.revision;
    out->success_ns = strtoll(text, &end, 10);
    out->tried_ns = strtoll(end, &end, 10);
    out->node = end + strspn(end, " ");
    return NULL;
}

static struct error *
write_turn(struct drill_turns *turns, const char *repository, struct arena *arena,
           const struct drill_row *turn)
{
    const char *text = arena_print(arena, "%jd %jd %s", (intmax_t)turn->success_ns,
                                   (intmax_t)turn->tried_ns, turn->node);
    struct store_change change = {row_of(repository, arena), (const uint8_t *)text, strlen(text),
                                  turn->revision};
    return store_write(turns->store, &change, 1, NULL);
}

/* ---- whose turn it is ---- */

/* Whether the node that tried last is lost, or is no node of the cluster any more. */
static bool
is_lost(struct drill_turns *turns, const char *node, struct arena *arena)
{
    pthread_mutex_lock(&turns->names);
    struct member_list members = {0};
    if (turns->cluster)
        members = cluster_members(turns->cluster, arena);
    pthread_mutex_unlock(&turns->names);
    const struct member *member = member_list_find(&members, node);
    return !member || member->is_expired;
}

static bool
may_try(struct drill_turns *turns, const struct drill_row *turn, int64_t every_ns,
        struct arena *arena)
{
    int64_t now = clock_unix_ns();
    if (now - turn->success_ns < every_ns || now - turn->tried_ns < HOUR_NS)
        return false;
    return !strcmp(turn->node, turns->node_id) || now - turn->tried_ns >= 2 * every_ns ||
           is_lost(turns, turn->node, arena);
}

static enum drill_answer
look(struct drill_turns *turns, const char *repository, uint32_t every_hours)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct drill_row turn;
    struct error *error AUTO(error_cleanup) = read_turn(turns, repository, &arena, &turn);
    if (error)
        return DRILL_ASK_AGAIN;
    if (!may_try(turns, &turn, every_hours * HOUR_NS, &arena))
        return DRILL_NOT_OURS;
    turn.tried_ns = clock_unix_ns();
    turn.node = turns->node_id;
    error = write_turn(turns, repository, &arena, &turn);
    /* After a write in doubt nobody tries for an hour, which is better than two who try. */
    return error ? DRILL_ASK_AGAIN : DRILL_OURS;
}

/* Whether the connection runs drills, and the other nodes are known. */
static enum drill_answer
check(struct drill_turns *turns, const char *connection)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    pthread_mutex_lock(&turns->names);
    bool is_known = !turns->is_in_cluster ||
                    (turns->cluster && cluster_members(turns->cluster, &arena).is_known);
    enum drill_answer answer = DRILL_ASK_AGAIN;
    if (turns->connection && is_known)
        answer = strcmp(turns->connection, connection) == 0 ? DRILL_OURS : DRILL_NOT_OURS;
    pthread_mutex_unlock(&turns->names);
    return answer;
}

enum drill_answer
drill_turns_take(struct drill_turns *turns, const char *connection, const char *repository,
                 uint32_t every_hours)
{
    enum drill_answer answer = check(turns, connection);
    if (answer != DRILL_OURS)
        return answer;
    pthread_mutex_lock(&turns->lock);
    answer = turns->store ? look(turns, repository, every_hours) : DRILL_NOT_OURS;
    pthread_mutex_unlock(&turns->lock);
    return answer;
}

void
drill_turns_succeed(struct drill_turns *turns, const char *repository)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct drill_row turn;
    pthread_mutex_lock(&turns->lock);
    struct error *error AUTO(error_cleanup) = turns->store
                                                  ? read_turn(turns, repository, &arena, &turn)
                                                  : error_new(CODE_UNAVAILABLE, "stopped");
    if (!error) {
        turn.success_ns = clock_unix_ns();
        error_free(write_turn(turns, repository, &arena, &turn)); /* else there is another drill */
    }
    pthread_mutex_unlock(&turns->lock);
}
