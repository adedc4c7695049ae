/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of copies: see replica_keep.h.
 *
 * A copy counts as long as its node is a member of the cluster and has not been lost for long. So a
 * node that restarts does not cause another copy, and one that does not come back does.
 */
#include "volumes/replica_keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "message/message_map.h"
#include "volumes/snapshot.h"
#include "volumes/spec.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define PAGE 256
#define LOOK_MS 10000
#define MOST_HANDLES 1000
#define NEW_NS (INT64_C(60) * 1000000000) /* until then a node may not have written its row yet */
#define ZONE "topology.kubernetes.io/zone"

/* ---- verifying ---- */

static void
forget(struct engine *engine, struct replica_row *row)
{
    error_free(replica_rows_remove(engine, row->handle, row->node_id)); /* again later */
    row->node_id = "";
}

/* What one node is asked at a time. */
struct question {
    const char *node_id;
    struct replica_row *rows[MOST_HANDLES];
    size_t count;
};

static void
ask_node(struct engine *engine, const struct replica_cluster *cluster, struct question *question)
{
    const char *handles[MOST_HANDLES];
    enum replica_state states[MOST_HANDLES];
    for (size_t i = 0; i < question->count; i++)
        handles[i] = question->rows[i]->handle;
    struct error *error AUTO(error_cleanup) =
        cluster->ask(cluster->context, question->node_id, handles, question->count, states);
    for (size_t i = 0; i < question->count && !error; i++) {
        struct replica_row *row = question->rows[i];
        bool is_new = clock_unix_ns() - row->since_ns < NEW_NS;
        if (states[i] == REPLICA_NONE && !is_new)
            forget(engine, row);
        else if (states[i] == REPLICA_HELD && !row->is_held)
            error_free(replica_rows_set(engine, row->handle, row->node_id, true));
    }
    question->count = 0;
}

/* Those of one node, from `first` on. */
static void
verify_node(struct engine *engine, const struct replica_cluster *cluster,
            struct replica_row_list *rows, size_t first, bool *is_done, struct arena *arena)
{
    struct question *question = arena_zeroed(arena, sizeof *question);
    question->node_id = rows->items[first].node_id;
    enum replica_presence presence = cluster->presence(cluster->context, question->node_id);
    for (size_t i = first; i < rows->count && !ops_is_stopped(engine->ops); i++) {
        struct replica_row *row = &rows->items[i];
        if (is_done[i] || strcmp(row->node_id, question->node_id) != 0)
            continue;
        is_done[i] = true;
        if (presence == REPLICA_NODE_FORGOTTEN)
            forget(engine, row);
        else if (presence == REPLICA_NODE_READY)
            question->rows[question->count++] = row;
        if (question->count == MOST_HANDLES)
            ask_node(engine, cluster, question);
    }
    if (question->count)
        ask_node(engine, cluster, question);
}

void
replica_keep_verify(struct engine *engine, const struct replica_cluster *cluster,
                    struct replica_row_list *rows, struct arena *arena)
{
    bool *is_done = arena_zeroed(arena, rows->count * sizeof *is_done);
    for (size_t i = 0; i < rows->count && !ops_is_stopped(engine->ops); i++)
        if (!is_done[i])
            verify_node(engine, cluster, rows, i, is_done, arena);
}

/* ---- counting ---- */

/* What one round knows. */
struct round {
    struct engine *engine;
    const struct replica_cluster *cluster;
    const struct replica_row_list *rows;
    struct replica_figures *figures;
    struct arena *arena;
    struct replica_candidate *candidates;
    size_t candidate_count;
    bool has_candidates; /* they were asked for */
};

static bool
has_row(const struct replica_row_list *rows, const char *handle, const char *node_id)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->items[i].handle, handle) == 0 &&
            strcmp(rows->items[i].node_id, node_id) == 0)
            return true;
    return false;
}

static size_t
count_copies(const struct round *round, const char *handle)
{
    size_t count = 0;
    for (size_t i = 0; i < round->rows->count; i++) {
        const struct replica_row *row = &round->rows->items[i];
        if (strcmp(row->handle, handle) != 0 || !row->node_id[0])
            continue;
        enum replica_presence presence =
            round->cluster->presence(round->cluster->context, row->node_id);
        count += presence == REPLICA_NODE_READY || presence == REPLICA_NODE_LOST;
    }
    return count;
}

/* ---- choosing ---- */

/* The newest earlier snapshot of the same volume that has copies; NULL: none has. */
static const char *
find_previous(const struct round *round, const snapshot_record *snapshot)
{
    const char *best = NULL;
    for (size_t i = 0; i < round->rows->count; i++) {
        const char *handle = round->rows->items[i].handle;
        snapshot_record *other;
        if (strcmp(handle, snapshot->handle) >= 0 || (best && strcmp(handle, best) <= 0))
            continue;
        struct error *error AUTO(error_cleanup) =
            snapshot_get(round->engine, handle, round->arena, &other);
        if (!error && strcmp(other->source_handle, snapshot->source_handle) == 0)
            best = handle;
    }
    return best;
}

static struct error *
read_candidates(struct round *round)
{
    if (round->has_candidates)
        return NULL;
    struct error *error = round->cluster->candidates(round->cluster->context, round->arena,
                                                     &round->candidates, &round->candidate_count);
    round->has_candidates = !error;
    return error;
}

static void
start_copies(struct round *round, const snapshot_record *snapshot, size_t missing)
{
    const char *zone = text_map_find(&round->engine->topology, ZONE);
    const char *previous = find_previous(round, snapshot);
    struct error *error AUTO(error_cleanup) = read_candidates(round);
    for (size_t i = 0; i < round->candidate_count && !error; i++) {
        struct replica_candidate *one = &round->candidates[i];
        one->is_taken = has_row(round->rows, snapshot->handle, one->node_id);
        one->has_previous = previous && has_row(round->rows, previous, one->node_id);
    }
    while (missing && !error && !ops_is_stopped(round->engine->ops)) {
        struct replica_candidate *best =
            replica_choice_make(round->candidates, round->candidate_count, zone ? zone : "");
        if (!best)
            return;
        best->is_taken = true;
        struct error *failure AUTO(error_cleanup) =
            round->cluster->receive(round->cluster->context, best->node_id, snapshot->handle);
        missing -= !failure;
        if (failure)
            log_info(round->engine->log, "a node does not take a copy of a snapshot",
                     LOG_TEXT("snapshot", snapshot->handle), LOG_TEXT("node", best->node_id),
                     LOG_TEXT("error", failure->message));
    }
}

/* With the snapshot itself; 1: it asks for none. */
static unsigned
count_wanted(const snapshot_record *snapshot, struct arena *arena)
{
    struct text_map parameters =
        message_map_read(snapshot->parameters, snapshot->n_parameters, arena);
    const char *value = text_map_find(&parameters, PARAMETER_REPLICAS);
    unsigned long count = value ? strtoul(value, NULL, 10) : 1;
    return count < PARAMETER_MOST_REPLICAS ? (unsigned)count : PARAMETER_MOST_REPLICAS;
}

static bool
look_at(struct round *round, const snapshot_record *snapshot)
{
    unsigned wanted = count_wanted(snapshot, round->arena);
    if (wanted <= 1 || snapshot_is_hidden(snapshot))
        return false;
    size_t copies = count_copies(round, snapshot->handle);
    size_t missing = wanted - 1 > copies ? wanted - 1 - copies : 0;
    round->figures->wanted += wanted - 1;
    round->figures->missing += missing;
    if (missing && snapshot->state == STATE(READY))
        start_copies(round, snapshot, missing);
    return true;
}

/* False: they could not be read. */
static bool
look_at_all(struct round *round, bool *any)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct row_page page = {.has_more = true};
    char after[BACKEND_HANDLE_SIZE] = "";
    *any = false;
    while (page.has_more && !ops_is_stopped(round->engine->ops)) {
        arena_clear(&arena);
        struct error *error AUTO(error_cleanup) =
            rows_list(round->engine, &snapshot_rows, after, PAGE, &arena, &page);
        if (error)
            return false;
        for (size_t i = 0; i < page.count; i++)
            *any |= look_at(round, (const snapshot_record *)page.rows[i].record);
        if (page.count)
            snprintf(after, sizeof after, "%s",
                     rows_handle(&snapshot_rows, page.rows[page.count - 1].record));
    }
    return true;
}

/* Without such snapshots nothing is read until another one is taken. */
void
replica_keep_number(struct replica_keep *keep, struct engine *engine,
                    const struct replica_cluster *cluster, const struct replica_row_list *rows,
                    struct arena *arena)
{
    struct replica_figures figures = {0};
    struct round round = {engine, cluster, rows, &figures, arena, NULL, 0, false};
    bool is_time = keep->has_any && clock_now_ms() - keep->looked_ms >= LOOK_MS;
    if (!atomic_exchange(&keep->looks, false) && !is_time)
        return;
    keep->looked_ms = clock_now_ms();
    if (!look_at_all(&round, &keep->has_any))
        atomic_store(&keep->looks, true);
    keep->figures = figures;
}
