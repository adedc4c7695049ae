/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of transfers that were not closed: see transfers_left.h.
 *
 * The other way round, the fetching node would have to remember each transfer durably before it
 * opens it, and to close it until it is answered. It can lose its store; the snapshot would stay.
 */
#include "volumes/transfers_left.h"

#include <string.h>

#include "base/clock.h"
#include "volumes/bases.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define PAGE 256
#define LONGEST_MS 10000u /* of one round; a node that falls silent takes some seconds */
#define NAMES "snapshot-name/transfer/"
#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name
#define STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name

/* ---- the node that fetches ---- */

static bool
is_fetching(const volume_record *volume, const char *snapshot, const char *transfer_id)
{
    const Skycap__Records__MoveRecord *move = volume->move;
    if (volume->state == STATE(COPYING))
        return strcmp(volume->remote_snapshot, snapshot) == 0;
    return volume->state == STATE(RECEIVING) && move &&
           (strcmp(move->snapshot, snapshot) == 0 || strcmp(move->base_snapshot, snapshot) == 0 ||
            strcmp(move->operation, transfer_id) == 0 ||
            strcmp(move->last_transfer, transfer_id) == 0);
}

static struct error *
is_work_of(struct engine *engine, const operation_record *operation, const char *snapshot,
           const char *transfer_id, bool *out)
{
    struct arena arena AUTO(arena_clear);
    struct row row;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    *out = false;
    if (operation->state != OPERATION_STATE(RUNNING))
        return NULL;
    struct error *error = rows_get(engine, &volume_rows, operation->subject, &arena, &row);
    if (!error)
        *out = is_fetching((volume_record *)row.record, snapshot, transfer_id);
    return error_forgive(error, CODE_NOT_FOUND);
}

/* Each volume that is being fetched has an operation, also one that could not be resumed. */
static struct error *
find_work(struct engine *engine, const char *snapshot, const char *transfer_id, bool *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *after = NULL;
    struct ops_page page = {.has_more = true};
    struct error *error = NULL;
    *out = false;
    while (!error && !*out && page.has_more) {
        error = ops_list(engine->ops, after, PAGE, &arena, &page);
        for (size_t i = 0; !error && !*out && i < page.count; i++)
            error = is_work_of(engine, page.records[i], snapshot, transfer_id, out);
        if (!error && page.count)
            after = page.records[page.count - 1]->id;
    }
    return error;
}

struct error *
transfers_left_find_use(struct engine *engine, const char *snapshot, const char *transfer_id,
                        struct remote_use *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record *own;
    *out = (struct remote_use){0};
    struct error *error = find_work(engine, snapshot, transfer_id, &out->is_used);
    if (error)
        return error;
    out->is_used |= transfer_ids_has(engine, transfer_id);
    error = snapshot_get_any(engine, snapshot, &arena, &own);
    out->is_kept = !error && own->purpose == PURPOSE(BASE) && own->kept;
    return error_forgive(error, CODE_NOT_FOUND);
}

/* ---- the node that has it ---- */

/* Until now, and for a while, the other node may be waiting for the answer to Open. */
static bool
is_old_enough(const snapshot_record *snapshot)
{
    return clock_unix_ns() - snapshot->created_ns > TRANSFERS_LEFT_AGE_MS * INT64_C(1000000);
}

/* transfer/VOLUME/ID */
static const char *
read_transfer_id(const snapshot_record *snapshot)
{
    const char *slash = strrchr(snapshot->name, '/');
    return slash ? slash + 1 : "";
}

static struct error *
ask_and_end(struct engine *engine, const struct remote_data *remote,
            const snapshot_record *snapshot)
{
    struct remote_use use;
    struct error *error = remote->find_use(remote->context, snapshot->peer_node, snapshot->handle,
                                           read_transfer_id(snapshot), &use);
    if (error || use.is_used)
        return error;
    log_info(engine->log, "the snapshot of a transfer that was not closed is not needed any more",
             LOG_TEXT("snapshot", snapshot->handle), LOG_TEXT("node", snapshot->peer_node));
    return bases_end_sent(engine, snapshot->handle, use.is_kept);
}

static void
reconcile_one(struct engine *engine, const struct remote_data *remote, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record *snapshot;
    struct error *error AUTO(error_cleanup) = snapshot_get_any(engine, handle, &arena, &snapshot);
    if (!error && snapshot->purpose == PURPOSE(BASE) && !snapshot->kept && snapshot->peer_node[0] &&
        is_old_enough(snapshot))
        error = ask_and_end(engine, remote, snapshot);
    if (error)
        log_debug(engine->log, "whether the snapshot of a transfer is needed is asked later",
                  LOG_TEXT("snapshot", handle), LOG_TEXT("error", error->message));
}

void
transfers_left_reconcile(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct remote_data *remote = atomic_load(&engine->remote);
    uint64_t end_ms = clock_now_ms() + LONGEST_MS;
    struct store_list names = {0};
    struct error *error AUTO(error_cleanup) =
        remote ? store_list(engine->store, NAMES, NULL, 0, &arena, &names) : NULL;
    for (size_t i = 0; !error && i < names.count && clock_now_ms() < end_ms; i++)
        reconcile_one(engine, remote,
                      arena_copy(&arena, names.entries[i].value, names.entries[i].value_size));
}
