/* SPDX-License-Identifier: Apache-2.0 */
/* The end of volumes that are GONE: see move_gone.h. */
#include "volumes/move_gone.h"

#include <string.h>

#include "base/clock.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"

/* Longer than any write to the registry may take, with its retries. */
#define LATE_WRITES_NS (INT64_C(120) * 1000000000)
/* After a member could not be asked, or has still something. The pauses become twice as long. */
#define FIRST_PAUSE_MS 1000
#define LONGEST_PAUSE_MS 30000

/* ---- rounds ---- */

void
move_gone_begin_round(struct move_gone *gone)
{
    arena_init(&gone->arena, NULL, 0, SIZE_MAX);
    gone->is_read = gone->has_waited = gone->has_ended = false;
    gone->is_over = clock_now_ms() < gone->due_ms;
}

void
move_gone_end_round(struct move_gone *gone)
{
    arena_clear(&gone->arena);
    if (gone->has_ended)
        gone->pause_ms = 0;
    if (!gone->has_waited)
        return;
    gone->pause_ms = gone->pause_ms ? 2 * gone->pause_ms : FIRST_PAUSE_MS;
    if (gone->pause_ms > LONGEST_PAUSE_MS)
        gone->pause_ms = LONGEST_PAUSE_MS;
    gone->due_ms = clock_now_ms() + gone->pause_ms;
}

/* Nothing can end as long as this lasts. */
static void
stop_round(struct move_gone *gone)
{
    gone->is_over = gone->has_waited = true;
}

/* One list for all volumes of the round. UNAVAILABLE: a member is lost. */
static struct error *
read_members(struct move_gone *gone, const struct move_cluster *cluster)
{
    if (gone->is_read)
        return NULL;
    struct error *error =
        cluster->owners->members(cluster->owners->context, &gone->arena, &gone->ids, &gone->count);
    for (size_t i = 0; !error && i < gone->count; i++) {
        if (!cluster->is_lost(cluster->context, gone->ids[i]))
            continue;
        gone->pause_ms = LONGEST_PAUSE_MS; /* it will not be back soon */
        error = error_new(CODE_UNAVAILABLE, "node \"%s\" is lost", gone->ids[i]);
    }
    gone->is_read = !error;
    return error;
}

/* ---- one volume ---- */

static struct error *
ask_members(const struct move_gone *gone, struct engine *engine, const struct move_cluster *cluster,
            const char *key, bool *is_clean)
{
    struct error *error = NULL;
    *is_clean = true;
    for (size_t i = 0; !error && i < gone->count; i++) {
        struct move_answer answer;
        if (strcmp(gone->ids[i], engine->node_id) == 0)
            continue;
        error = cluster->ask(cluster->context, gone->ids[i], key, true, &answer);
        *is_clean = *is_clean && !error && !answer.has_row;
    }
    return error;
}

/* `*is_clean`: all members have nothing of it. */
static struct error *
look(struct move_gone *gone, struct engine *engine, const struct move_cluster *cluster,
     const volume_record *volume, struct arena *arena, bool *is_clean)
{
    *is_clean = false;
    struct error *error = read_members(gone, cluster);
    if (!error)
        error =
            ask_members(gone, engine, cluster, move_keys_print(engine, volume, arena), is_clean);
    if (error)
        stop_round(gone);
    gone->has_waited = gone->has_waited || !*is_clean;
    return error_forgive(error, CODE_UNAVAILABLE);
}

/*
 * When all members have nothing, waits for late writes to the registry, and asks them again. Nobody
 * else changes a row that is GONE. Its name may be another volume's by now.
 */
struct error *
move_gone_look_at(struct move_gone *gone, struct engine *engine, const struct move_cluster *cluster,
                  struct row *row, struct arena *arena)
{
    bool is_clean = false;
    volume_record *volume = (volume_record *)row->record;
    int64_t now = clock_unix_ns();
    bool is_waiting = volume->move->begun_ns != 0;
    if (gone->is_over || (is_waiting && now - volume->move->begun_ns < LATE_WRITES_NS))
        return NULL;
    struct error *error = move_remove_data(engine, volume, 0);
    if (!error)
        error = look(gone, engine, cluster, volume, arena, &is_clean);
    if (error || !is_clean)
        return error;
    gone->has_ended = true;
    if (!is_waiting) {
        volume->move->begun_ns = now;
        return rows_update(engine, &volume_rows, row->record, &row->revision);
    }
    error =
        cluster->owners->forget(cluster->owners->context, move_keys_print(engine, volume, arena));
    return error ? error : move_rows_delete(engine, volume, arena);
}
