/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching a replica: see replica.h.
 *
 * The data is fetched from any node that has it. Copies are asked before the origin, and the origin
 * only if no copy answers; so the origin sends a snapshot to few nodes, however many want it. A
 * node that is busy is asked again a little later (stream_slots.h).
 *
 * The stream is applied to data with the handle of the snapshot, but in the place of a volume,
 * because snapshots cannot be written to. When it is complete, a snapshot is taken of it.
 */
#include "volumes/replica_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/move_cluster.h"
#include "volumes/pull.h"
#include "volumes/pull_position.h"
#include "volumes/remote_data.h"
#include "volumes/replica.h"
#include "volumes/snapshot.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define PATIENCE_MS 15000u /* with a node that has sent a part already */
#define BUSY_MS 500u       /* then somebody may be ready */
#define LONGEST_PAUSE_MS 8000u

struct replica_work {
    struct engine *engine;
    struct arena arena;
    char handle[BACKEND_HANDLE_SIZE];
    snapshot_record *record; /* with the state READY; NULL: not read yet */
    const struct replica_cluster *cluster;
    const struct remote_data *remote;
    const struct progress *progress;
    struct arena attempt;         /* until the next node is tried */
    char source[OWNER_NODE_SIZE]; /* the node whose slot is ours; "": none */
    uint64_t received;
    bool is_made;
};

static bool
is_cancelled(const struct replica_work *work)
{
    return work->progress->cancelled(work->progress->context);
}

static struct error *
cancelled_error(void)
{
    return error_new(CODE_CANCELLED, "the copy of the snapshot was cancelled");
}

/* Between half of the time and all of it, so that not all nodes ask at once. */
static void
rest(const struct replica_work *work, uint32_t ms)
{
    progress_rest(work->progress, ms / 2 + (uint32_t)(clock_now_ns() / 1000 % (ms / 2)));
}

static struct data
incoming_data(const snapshot_record *record)
{
    struct data data = snapshot_data(record);
    data.role = ROLE_VOLUME;
    return data;
}

/* ---- the source ---- */

static void
release_source(struct replica_work *work)
{
    if (work->source[0])
        work->remote->close(work->remote->context, work->source, work->handle);
    work->source[0] = '\0';
}

static struct error *
open_at(struct replica_work *work, const char *node_id, struct remote_source *out)
{
    char id[BACKEND_HANDLE_SIZE];
    struct bases_list have;
    struct error *error =
        bases_find(work->engine, work->record->source_handle, &work->attempt, &have);
    if (error)
        return error;
    handle_make(work->engine, id);
    struct remote_open what = {.kind = SOURCE_SNAPSHOT,
                               .handle = work->handle,
                               .node_id = node_id,
                               .transfer_id = id,
                               .is_spread = true,
                               .have = have.handles,
                               .have_count = have.count};
    error = work->remote->open(work->remote->context, &what, &work->attempt, out);
    if (!error && strcmp(out->snapshot, work->handle) != 0)
        error = error_new(CODE_INTERNAL, "node \"%s\" has opened another snapshot", node_id);
    if (!error)
        snprintf(work->source, sizeof work->source, "%s", node_id);
    return error;
}

/* The node that has sent the beginning, so that it need not be sent again; "": there is none. */
static const char *
find_begun(struct replica_work *work)
{
    struct data data = incoming_data(work->record);
    struct pull_position position;
    bool is_there;
    struct error *error AUTO(error_cleanup) = pull_position_read(
        work->engine, pull_row(&data, &work->attempt), &work->attempt, &position, &is_there);
    bool is_begun = !error && is_there && position.position.offset &&
                    strcmp(position.snapshot, work->handle) == 0;
    return is_begun ? position.node_id : "";
}

static bool
is_busy(const struct error *error)
{
    return error->code == CODE_RESOURCE_EXHAUSTED;
}

/* Nodes with copies. RESOURCE_EXHAUSTED: one of them is busy. UNAVAILABLE: there are none. */
static struct error *
open_copy(struct replica_work *work, struct remote_source *out)
{
    const char *const *ids;
    size_t count;
    struct error *busy = NULL, *error AUTO(error_cleanup) =
                                   work->cluster->holders(work->cluster->context, work->handle,
                                                          &work->attempt, &ids, &count);
    size_t first = !error && count ? (size_t)(clock_now_ns() / 1000 % count) : 0;
    for (size_t i = 0; !error && i < count; i++) {
        const char *id = ids[(first + i) % count];
        if (strcmp(id, work->engine->node_id) == 0 || strcmp(id, work->record->peer_node) == 0)
            continue;
        struct error *failure = open_at(work, id, out);
        if (!failure) {
            error_free(busy);
            return NULL;
        }
        if (!busy && is_busy(failure))
            busy = STEAL(failure);
        error_free(failure);
    }
    return busy ? busy : error_new(CODE_UNAVAILABLE, "no node that answers has a copy");
}

static struct error *
open_source(struct replica_work *work, struct remote_source *out)
{
    const char *begun = find_begun(work);
    struct error *error = begun[0] ? open_at(work, begun, out) : NULL;
    if (begun[0] && (!error || is_busy(error)))
        return error;
    error_free(error);
    error = open_copy(work, out);
    if (!error || is_busy(error))
        return error;
    error_free(error);
    return open_at(work, work->record->peer_node, out);
}

/* ---- the data ---- */

static void
report(void *context, uint64_t done, uint64_t total)
{
    struct replica_work *work = context;
    work->received = done;
    work->progress->report(work->progress->context, done, total);
}

static bool
ask_cancelled(void *context)
{
    return is_cancelled(context);
}

static void
rest_exactly(void *context, uint32_t ms)
{
    progress_rest(((const struct replica_work *)context)->progress, ms);
}

static struct error *
pull(struct replica_work *work, const struct remote_source *source)
{
    struct progress progress = {report, ask_cancelled, work, rest_exactly};
    struct data to = incoming_data(work->record);
    struct data_settings settings = {.size_bytes = (uint64_t)work->record->size_bytes,
                                     .nocow = work->record->nocow};
    struct pull_request request = {.node_id = work->source,
                                   .snapshot = work->handle,
                                   .base = source->base,
                                   .start = PULL_NEW,
                                   .to = &to,
                                   .settings = &settings,
                                   .is_spread = true,
                                   .bytes_per_second = work->record->bytes_per_second,
                                   .patience_ms = PATIENCE_MS};
    return pull_data(work->engine, &request, &progress);
}

/* What is wrong here, or with the snapshot itself, stays wrong. */
static bool
is_final(const struct error *error, bool is_open)
{
    return error->code == CODE_CANCELLED || error->code == CODE_NOT_FOUND ||
           error->code == CODE_PERMISSION_DENIED || error->code == CODE_INVALID_ARGUMENT ||
           (is_open && error->code == CODE_RESOURCE_EXHAUSTED);
}

static struct error *
fetch_once(struct replica_work *work, bool *is_final_error)
{
    struct remote_source source;
    arena_clear(&work->attempt);
    struct error *error = open_source(work, &source);
    bool is_open = !error;
    if (!error)
        error = pull(work, &source);
    /* Another node may have it though this one does not. */
    bool is_of_copy = is_open && strcmp(work->source, work->record->peer_node) != 0;
    *is_final_error =
        error && is_final(error, is_open) && !(is_of_copy && error->code == CODE_NOT_FOUND);
    return error;
}

static struct error *
fetch(struct replica_work *work)
{
    for (uint32_t pause_ms = BUSY_MS;;) {
        bool is_end;
        struct error *error AUTO(error_cleanup) = fetch_once(work, &is_end);
        if (!error || is_end)
            return STEAL(error);
        release_source(work);
        if (is_cancelled(work))
            return cancelled_error();
        if (is_busy(error)) {
            rest(work, 2 * BUSY_MS);
            continue;
        }
        log_info(work->engine->log, "a copy of a snapshot waits for a node that has it",
                 LOG_TEXT("snapshot", work->handle), LOG_TEXT("error", error->message));
        rest(work, pause_ms);
        pause_ms = 2 * pause_ms < LONGEST_PAUSE_MS ? 2 * pause_ms : LONGEST_PAUSE_MS;
    }
}

static struct error *
make_snapshot(struct replica_work *work)
{
    struct backend *backend = work->engine->backend;
    struct data from = incoming_data(work->record), to = snapshot_data(work->record);
    struct data_settings settings = {.size_bytes = (uint64_t)work->record->size_bytes,
                                     .note = rows_note(&work->record->base, &work->arena)};
    struct error *error = backend_remove(backend, &to);
    if (!error)
        error = backend_copy(backend, &from, &to, &settings, NULL);
    work->is_made = !error;
    return error;
}

static struct error *
wait_for_cluster(struct replica_work *work)
{
    for (;;) {
        work->cluster = atomic_load(&work->engine->replicas);
        work->remote = atomic_load(&work->engine->remote);
        if (work->cluster && work->remote)
            return NULL;
        if (is_cancelled(work))
            return cancelled_error();
        rest(work, BUSY_MS);
    }
}

static struct error *
read_record(struct replica_work *work)
{
    struct error *error = snapshot_get_any(work->engine, work->handle, &work->arena, &work->record);
    if (!error && (!snapshot_is_replica(work->record) || work->record->state != STATE(COPYING))) {
        work->record = NULL;
        error = error_new(CODE_FAILED_PRECONDITION, "\"%s\" is no copy in progress", work->handle);
    }
    if (!error)
        work->record->state = STATE(READY);
    return error;
}

/* The sweep may be removing old data of it. It does not begin any more: there is a row. */
static struct error *
wait_for_sweep(const struct replica_work *work)
{
    struct name_lock *incoming AUTO(name_lock_release) = NULL;
    struct name_lock *made AUTO(name_lock_release) = NULL;
    struct error *error =
        data_lock_wait(work->engine, &volume_rows, work->handle, DATA_LOCK_WAIT_MS, &incoming);
    return error ? error
                 : data_lock_wait(work->engine, &snapshot_rows, work->handle, DATA_LOCK_WAIT_MS,
                                  &made);
}

static struct error *
run(void *context, const struct progress *progress)
{
    struct replica_work *work = context;
    work->progress = progress;
    struct error *error = wait_for_cluster(work);
    if (!error)
        error = read_record(work);
    if (!error)
        error = wait_for_sweep(work);
    if (!error)
        error = fetch(work);
    return error ? error : make_snapshot(work);
}

/* ---- the end ---- */

/* The position goes first: what is being removed must not be taken for the beginning of a copy. */
static void
drop_data(struct replica_work *work, const struct store_change *position)
{
    struct data incoming = incoming_data(work->record), made = snapshot_data(work->record);
    struct error *error AUTO(error_cleanup) = store_write(work->engine->store, position, 1, NULL);
    if (error)
        return;
    rows_drop_data(work->engine, &incoming);
    rows_drop_data(work->engine, &made);
}

static void
settle(void *context, const struct error *result, struct arena *arena, struct ops_changes *out)
{
    struct replica_work *work = context;
    struct error *error AUTO(error_cleanup) = work->record ? NULL : read_record(work);
    if (error)
        return;
    struct data incoming = incoming_data(work->record);
    struct store_change position = {pull_row(&incoming, arena), NULL, 0, STORE_ANY};
    out->items[out->count++] = position;
    if (!result) {
        out->items[out->count++] =
            rows_change(&snapshot_rows, &work->record->base, STORE_ANY, arena);
        return;
    }
    work->is_made = false;
    drop_data(work, &position);
    rows_add_delete(&snapshot_rows, &work->record->base, arena, &out->items[out->count]);
    out->count += 2;
}

void
replica_work_tell(struct engine *engine, const snapshot_record *replica)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct replica_cluster *cluster = atomic_load(&engine->replicas);
    snapshot_record *told;
    if (!cluster)
        return;
    error_free(cluster->announce(cluster->context, replica->handle, true));
    error_free(cluster->enroll(cluster->context, replica->peer_node, replica->handle, REPLICA_HELD,
                               &arena, &told));
    replica_upkeep_wake(engine);
}

/* The slot goes last: by then the others find the copy here. */
static void
work_free(void *context)
{
    struct replica_work *work = context;
    snapshot_record *told;
    bool is_ended = work->record && work->cluster && !ops_is_stopped(work->engine->ops);
    if (is_ended && work->is_made) {
        struct data incoming = incoming_data(work->record);
        replica_work_tell(work->engine, work->record);
        work->cluster->count_received(work->cluster->context, work->received);
        rows_drop_data(work->engine, &incoming);
    } else if (is_ended) {
        error_free(work->cluster->enroll(work->cluster->context, work->record->peer_node,
                                         work->handle, REPLICA_NONE, &work->arena, &told));
    }
    if (work->remote)
        release_source(work);
    arena_clear(&work->attempt);
    arena_clear(&work->arena);
    free(work);
}

struct ops_spec
replica_work_spec(struct engine *engine, const char *handle)
{
    struct replica_work *work = memory_zeroed(sizeof *work);
    work->engine = engine;
    arena_init(&work->arena, NULL, 0, SIZE_MAX);
    arena_init(&work->attempt, NULL, 0, SIZE_MAX);
    snprintf(work->handle, sizeof work->handle, "%s", handle);
    return (struct ops_spec){
        .kind = REPLICA_SPREAD,
        .units = "bytes",
        .work = {work, run, settle, work_free},
    };
}

/* ---- after a restart ---- */

static struct error *
resume(void *context, const operation_record *operation)
{
    struct engine *engine = context;
    struct ops_spec spec = replica_work_spec(engine, operation->subject);
    return ops_continue(engine->ops, &spec, operation);
}

struct error *
replica_resume_all(struct engine *engine)
{
    static const struct ops_kind kinds[] = {{REPLICA_SPREAD, resume}};
    return ops_resume(engine->ops, kinds, COUNT_OF(kinds), engine);
}
