/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with many copies are asked about each of them. */
#include "volumes/replica_keep.h"

#include <string.h>
#include <unistd.h>

#include "check.h"

#define COPIES 2500
#define MOST 1000 /* in one question: csi/replicator.c refuses more */

struct nodes {
    size_t asked;     /* about copies on the node "there" */
    bool is_too_much; /* at once */
};

static enum replica_presence
presence(void *context, const char *node_id)
{
    (void)context;
    return strcmp(node_id, "gone") == 0 ? REPLICA_NODE_FORGOTTEN : REPLICA_NODE_READY;
}

static struct error *
ask(void *context, const char *node_id, const char *const *handles, size_t count,
    enum replica_state *states)
{
    struct nodes *nodes = context;
    (void)handles;
    nodes->is_too_much |= count > MOST;
    nodes->asked += strcmp(node_id, "there") == 0 ? count : 0;
    for (size_t i = 0; i < count; i++)
        states[i] = REPLICA_HELD;
    return NULL;
}

static void
add_copies(struct engine *engine, const char *node_id, struct arena *arena)
{
    for (size_t i = 0; i < COPIES; i++)
        CHECK(!replica_rows_set(engine, arena_print(arena, "handle-%zu", i), node_id, false));
}

static void
every_copy_is_verified_in_one_round(struct engine *engine, struct arena *arena)
{
    struct nodes nodes = {0};
    struct replica_cluster cluster = {.presence = presence, .ask = ask, .context = &nodes};
    struct replica_row_list rows;
    add_copies(engine, "there", arena);
    add_copies(engine, "gone", arena);
    CHECK(!replica_rows_list(engine, "", arena, &rows));
    CHECK_NUMBER(rows.count, 2 * COPIES);
    replica_keep_verify(engine, &cluster, &rows, arena);
    CHECK_NUMBER(nodes.asked, COPIES);
    CHECK(!nodes.is_too_much);
    CHECK(!replica_rows_list(engine, "", arena, &rows));
    CHECK_NUMBER(rows.count, COPIES); /* without those of the node that is gone */
    size_t held = 0;
    for (size_t i = 0; i < rows.count; i++)
        held += rows.items[i].is_held && strcmp(rows.items[i].node_id, "there") == 0;
    CHECK_NUMBER(held, COPIES);
}

int
main(void)
{
    struct arena arena;
    struct engine engine = {0};
    static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK(!store_open("memory:", NULL, &engine.store));
    engine.ops = ops_open(&(struct ops_options){.store = engine.store, .log = &quiet});
    every_copy_is_verified_in_one_round(&engine, &arena);
    ops_close(engine.ops);
    store_close(engine.store);
    arena_clear(&arena);
    return check_report("replica keep");
}
