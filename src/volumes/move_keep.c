/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this node had of a volume that another one has recovered: see move_keep.h. The snapshot is
 * not taken before the last user has stopped: it would not have what the users write afterwards.
 * When it is complete, the volume has LEFT.
 */
#include "volumes/move_keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_rows.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define SNAPSHOT_STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

/* After a failure. The pauses of copies that fail become twice as long. */
#define FIRST_PAUSE_MS UINT64_C(10000)
#define LONGEST_PAUSE_MS UINT64_C(600000)

struct kept_volume {
    struct kept_volume *next;
    char handle[BACKEND_HANDLE_SIZE];
    char copying[BACKEND_HANDLE_SIZE]; /* the snapshot, and its operation; "": none */
    uint64_t due_ms;
    uint64_t pause_ms;
};

static struct kept_volume *
find_or_add(struct move_keeping *keeping, const char *handle)
{
    struct kept_volume *kept = keeping->first;
    while (kept && strcmp(kept->handle, handle) != 0)
        kept = kept->next;
    if (kept)
        return kept;
    kept = memory_zeroed(sizeof *kept);
    snprintf(kept->handle, sizeof kept->handle, "%s", handle);
    kept->pause_ms = FIRST_PAUSE_MS;
    kept->next = keeping->first;
    keeping->first = kept;
    return kept;
}

static void
drop(struct move_keeping *keeping, struct kept_volume *kept)
{
    struct kept_volume **place = &keeping->first;
    while (*place != kept)
        place = &(*place)->next;
    *place = kept->next;
    free(kept);
}

/* ---- one volume ---- */

/* Another volume's snapshot may have the first name. */
static struct error *
find_or_make_snapshot(struct engine *engine, const volume_record *volume, struct arena *arena,
                      snapshot_record **out)
{
    const char *name = arena_print(arena, "%s-before-recovery-%ju", volume->name,
                                   (uintmax_t)volume->recovered_epoch);
    struct error *error = snapshot_create_last(engine, name, volume->handle, arena, out);
    if (!error || error->code != CODE_ALREADY_EXISTS)
        return error;
    error_free(error);
    name = arena_print(arena, "%s-%s", name, volume->handle);
    return snapshot_create_last(engine, name, volume->handle, arena, out);
}

/* `*snapshot` is NULL if the volume is not SUPERSEDED any more; otherwise it may be COPYING. */
static struct error *
make_snapshot(struct engine *engine, const char *handle, struct arena *arena,
              snapshot_record **snapshot)
{
    struct held_volume held AUTO(held_release) = {0};
    *snapshot = NULL;
    struct error *error = held_take_any(engine, handle, DATA_LOCK_WAIT_MS, arena, &held);
    if (error || held.record->state != VOLUME_STATE(SUPERSEDED))
        return error_forgive(error, CODE_NOT_FOUND);
    error = volume_check_unused(engine, held.record, arena);
    if (!error)
        error = find_or_make_snapshot(engine, held.record, arena, snapshot);
    if (error || (*snapshot)->state != SNAPSHOT_STATE(READY))
        return error;
    log_warn(engine->log, "what this node had of a recovered volume is a snapshot now",
             LOG_TEXT("handle", handle), LOG_TEXT("node", held.record->move->node_id),
             LOG_TEXT("snapshot", (*snapshot)->name));
    struct owner owner = {.epoch = held.record->epoch};
    strncat(owner.node_id, held.record->move->node_id, sizeof owner.node_id - 1);
    return move_leave_held(engine, &held, &owner, arena);
}

/* The row of a copy that has failed is gone, but its operation is known. */
static struct error *
check_copy(struct engine *engine, struct kept_volume *kept)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    operation_record *operation;
    if (!kept->copying[0])
        return NULL;
    struct error *error AUTO(error_cleanup) =
        ops_get(engine->ops, kept->copying, &arena, &operation);
    if (error || operation->state == OPERATION_STATE(RUNNING))
        return NULL;
    kept->copying[0] = '\0';
    if (operation->state == OPERATION_STATE(SUCCEEDED))
        return NULL;
    return error_new((enum code)operation->error_code,
                     "the volume \"%s\", which another node has recovered, cannot be kept as a "
                     "snapshot: %s",
                     kept->handle, operation->error_message);
}

static void
plan_next(struct kept_volume *kept, const struct error *error)
{
    kept->due_ms = clock_now_ms() + kept->pause_ms;
    if (error->code == CODE_FAILED_PRECONDITION) /* it is in use */
        return;
    kept->pause_ms = 2 * kept->pause_ms < LONGEST_PAUSE_MS ? 2 * kept->pause_ms : LONGEST_PAUSE_MS;
}

struct error *
move_keep(struct move_keeping *keeping, struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct kept_volume *kept = find_or_add(keeping, handle);
    snapshot_record *snapshot = NULL;
    if (clock_now_ms() < kept->due_ms)
        return NULL;
    struct error *error = check_copy(engine, kept);
    if (!error)
        error = make_snapshot(engine, handle, &arena, &snapshot);
    if (error)
        plan_next(kept, error);
    else if (!snapshot || snapshot->state == SNAPSHOT_STATE(READY))
        drop(keeping, kept);
    else
        snprintf(kept->copying, sizeof kept->copying, "%s", snapshot->handle);
    return error;
}

void
move_keep_clear(struct move_keeping *keeping)
{
    while (keeping->first)
        drop(keeping, keeping->first);
}
