/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes of a lost node. Another node that has a snapshot of the volume can take it over: as at
 * the end of a move, its copy is INCOMING at the next epoch, and the registry decides. Only the
 * source has not agreed: see move_return.c for what happens when it is back.
 *
 * The snapshot may be a copy of one that the lost node took, a base of transfers, or any snapshot
 * that stayed here when the volume left. Copies and received bases tell what the volume is; for the
 * others the row LEFT does.
 */
#include <string.h>

#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define PAGE 256
#define SNAPSHOT_STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

/* ---- finding a copy ---- */

/* `volume`: its handle, or its name. `*out` is NULL if it has not LEFT this node. */
static struct error *
find_left(struct engine *engine, const char *volume, struct arena *arena, volume_record **out)
{
    struct row row = {0};
    struct error *error =
        error_forgive(rows_get(engine, &volume_rows, volume, arena, &row), CODE_NOT_FOUND);
    if (!error && !row.record)
        error = rows_find(engine, &volume_rows, volume, arena, &row);
    *out = error ? NULL : (volume_record *)row.record;
    if (*out && (*out)->state != VOLUME_STATE(LEFT))
        *out = NULL;
    return error;
}

static bool
is_of(const snapshot_record *snapshot, const char *volume, const volume_record *left)
{
    if (snapshot->state != SNAPSHOT_STATE(READY))
        return false;
    if (!snapshot->volume)
        return left && strcmp(snapshot->source_handle, left->handle) == 0;
    return strcmp(snapshot->source_handle, volume) == 0 ||
           strcmp(snapshot->volume->name, volume) == 0;
}

/* In one epoch one node takes all snapshots, with one clock. */
static bool
is_newer(const snapshot_record *a, const snapshot_record *b)
{
    return a->epoch != b->epoch ? a->epoch > b->epoch : a->created_ns > b->created_ns;
}

/* The newest snapshot of each volume. */
struct finding {
    const char *volume;
    const volume_record *left;
    snapshot_record **items;
    size_t count;
    size_t room;
};

static void
add(struct finding *finding, snapshot_record *snapshot, struct arena *arena)
{
    if (finding->count == finding->room) {
        size_t room = finding->room ? 2 * finding->room : 8;
        snapshot_record **items = arena_alloc(arena, room * sizeof *items);
        if (finding->count)
            memcpy(items, finding->items, finding->count * sizeof *items);
        finding->items = items;
        finding->room = room;
    }
    finding->items[finding->count++] = snapshot;
}

static void
take(struct finding *finding, snapshot_record *snapshot, struct arena *arena)
{
    if (!is_of(snapshot, finding->volume, finding->left))
        return;
    for (size_t i = 0; i < finding->count; i++) {
        snapshot_record **item = &finding->items[i];
        if (strcmp((*item)->source_handle, snapshot->source_handle) != 0)
            continue;
        if (is_newer(snapshot, *item))
            *item = snapshot;
        return;
    }
    add(finding, snapshot, arena);
}

/* Each has its volume then. */
static struct error *
find_newest(struct engine *engine, const char *volume, struct arena *arena, struct finding *out)
{
    const char *after = "";
    struct row_page page = {.has_more = true};
    volume_record *left;
    struct error *error = find_left(engine, volume, arena, &left);
    *out = (struct finding){.volume = volume, .left = left};
    while (!error && page.has_more) {
        error = rows_list(engine, &snapshot_rows, after, PAGE, arena, &page);
        for (size_t i = 0; !error && i < page.count; i++) {
            snapshot_record *snapshot = (snapshot_record *)page.rows[i].record;
            after = snapshot->handle;
            take(out, snapshot, arena);
        }
    }
    for (size_t i = 0; !error && i < out->count; i++)
        if (!out->items[i]->volume)
            out->items[i]->volume = left;
    return error;
}

/*
 * A volume with a later epoch than 0 has a row in the registry until it is deleted, and all members
 * know that (rule 12). Copies on a node that was not a member then are left.
 */
static bool
was_deleted(const snapshot_record *snapshot, const struct owner *row)
{
    return row->epoch ? !row->node_id[0] : snapshot->epoch > 0;
}

/* Of the volume that a snapshot is of. NOT_FOUND: it was deleted. */
static struct error *
find_owner(const struct move_cluster *cluster, const snapshot_record *snapshot, struct arena *arena,
           struct owner *row, const char **node_id)
{
    const char *key = move_keys_of_snapshot(snapshot, arena);
    struct error *error = cluster->owners->read(cluster->owners->context, key, row);
    if (error)
        return error;
    if (was_deleted(snapshot, row))
        return error_new(CODE_NOT_FOUND, "the volume \"%s\" was deleted; restore its snapshots",
                         snapshot->source_handle);
    if (!row->epoch)
        return cluster->find_home(cluster->context, key, arena, node_id);
    *node_id = arena_string(arena, row->node_id);
    return NULL;
}

/* This node's store was lost, and with it the volume. */
static bool
is_lost_here(struct engine *engine, const snapshot_record *snapshot, struct arena *arena)
{
    struct row row;
    struct error *error AUTO(error_cleanup) =
        rows_get(engine, &volume_rows, snapshot->source_handle, arena, &row);
    return !error && ((volume_record *)row.record)->state == VOLUME_STATE(LOST);
}

/* The node is lost; or it answers, and the volume was lost with its store. */
static bool
has_lost(const struct engine *engine, const struct move_cluster *cluster, const char *node_id,
         const snapshot_record *snapshot, struct arena *arena)
{
    struct move_answer answer;
    if (strcmp(node_id, engine->node_id) == 0)
        return false;
    if (cluster->is_lost(cluster->context, node_id))
        return true;
    struct error *error AUTO(error_cleanup) = cluster->ask(
        cluster->context, node_id, move_keys_of_snapshot(snapshot, arena), false, &answer);
    return !error && answer.is_lost;
}

static struct error *
describe_copy(struct engine *engine, const struct move_cluster *cluster, snapshot_record *snapshot,
              struct arena *arena, struct move_copy *out)
{
    struct owner row;
    *out = (struct move_copy){.snapshot = snapshot, .owner = ""};
    struct error *error = find_owner(cluster, snapshot, arena, &row, &out->owner);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        out->is_deleted = true;
        return NULL;
    }
    if (error)
        return error;
    if (strcmp(out->owner, engine->node_id) == 0 && is_lost_here(engine, snapshot, arena))
        return error_new(CODE_NOT_FOUND, "the volume \"%s\" is recovered at another node",
                         snapshot->source_handle);
    bool is_away = cluster->is_lost(cluster->context, out->owner);
    out->is_lost = is_away || has_lost(engine, cluster, out->owner, snapshot, arena);
    out->is_only_store_lost = out->is_lost && !is_away;
    out->is_before_recovery = snapshot->epoch < row.recovered_epoch;
    return out->is_lost ? bases_offer(engine, snapshot->handle) : NULL;
}

static void
put_lost_first(struct move_copies *copies)
{
    for (size_t i = 0, lost = 0; i < copies->count; i++) {
        struct move_copy copy = copies->items[i];
        if (!copy.is_lost)
            continue;
        copies->items[i] = copies->items[lost];
        copies->items[lost++] = copy;
    }
}

/* A volume of which the node is not known is left out if there is another. */
struct error *
move_find_copies(struct engine *engine, const char *volume, struct arena *arena,
                 struct move_copies *out)
{
    const struct move_cluster *cluster;
    struct finding finding;
    struct error *first AUTO(error_cleanup) = NULL;
    *out = (struct move_copies){0};
    struct error *error = find_newest(engine, volume, arena, &finding);
    if (!error && !finding.count)
        error = error_new(CODE_NOT_FOUND, "node \"%s\" has no snapshot of the volume \"%s\"",
                          engine->node_id, volume);
    if (!error)
        error = move_find_cluster(engine, &cluster);
    if (error)
        return error;
    out->items = arena_alloc(arena, finding.count * sizeof *out->items);
    for (size_t i = 0; i < finding.count; i++) {
        error = describe_copy(engine, cluster, finding.items[i], arena, &out->items[out->count]);
        if (!error)
            out->count++;
        else if (!first)
            first = STEAL(error);
        error_free(error);
    }
    put_lost_first(out);
    return out->count ? NULL : STEAL(first);
}

/* ---- recovering ---- */

/* The volume as it was when the snapshot was taken, as the end of a move from the lost node. */
static volume_record *
make_record(const snapshot_record *snapshot, const struct owner *row, const char *lost,
            bool was_here, struct arena *arena)
{
    volume_record *record = snapshot->volume;
    record->state = VOLUME_STATE(INCOMING);
    record->epoch = record->recovered_epoch = row->epoch + 1;
    record->blank = snapshot->blank;
    record->size_bytes = snapshot->size_bytes;
    record->formatted_bytes = snapshot->formatted_bytes;
    record->n_attachments = 0;
    record->remote_source = NULL;
    record->remote_snapshot = record->remote_node = record->remote_base = "";
    move_rows_set_node(record, lost, arena);
    record->move->was_here = was_here;
    return record;
}

static struct error *
copy_data(struct engine *engine, const snapshot_record *snapshot, const volume_record *record,
          struct arena *arena)
{
    struct data from = snapshot_data(snapshot), to = volume_data(record);
    struct data_settings settings = volume_settings(record, arena);
    settings.note = rows_note(&record->base, arena);
    struct error *error = backend_remove(engine->backend, &to);
    if (!error)
        error = backend_copy(engine->backend, &from, &to, &settings, NULL);
    return error ? error : backend_sync(engine->backend);
}

/* The volume's name is locked. */
static struct error *
check_absent(struct engine *engine, const volume_record *volume, struct arena *arena,
             bool *was_here)
{
    struct row row = {0};
    struct error *error =
        error_forgive(rows_get(engine, &volume_rows, volume->handle, arena, &row), CODE_NOT_FOUND);
    *was_here = row.record != NULL;
    if (!error && row.record && ((volume_record *)row.record)->state != VOLUME_STATE(LEFT))
        error = error_new(CODE_ABORTED, "the volume \"%s\" is moving here, or recovered already",
                          volume->handle);
    if (error)
        return error;
    error = rows_find(engine, &volume_rows, volume->name, arena, &row);
    if (!error && row.record && strcmp(rows_handle(&volume_rows, row.record), volume->handle) != 0)
        error =
            error_new(CODE_ALREADY_EXISTS, "node \"%s\" has another volume that is called \"%s\"",
                      engine->node_id, volume->name);
    return error;
}

/* The snapshot may have been deleted, and may be arriving again, since it was found. */
static struct error *
lock_snapshot(struct engine *engine, const snapshot_record *snapshot, struct arena *arena,
              struct name_lock **lock)
{
    snapshot_record *now;
    struct error *error = data_lock_shared(engine, &snapshot_rows, snapshot->handle, lock);
    if (!error)
        error = snapshot_get_any(engine, snapshot->handle, arena, &now);
    if (!error && now->state != SNAPSHOT_STATE(READY))
        error = error_new(CODE_ABORTED, "the snapshot \"%s\" is not complete any more; try again",
                          snapshot->handle);
    return error;
}

/* Copying may have taken long, and rule 12 waits only so long for what was read before. */
static struct error *
check_owner_unchanged(const struct move_cluster *cluster, const snapshot_record *snapshot,
                      const struct owner *row, const char *lost, struct arena *arena)
{
    struct owner now;
    const char *node_id;
    struct error *error = find_owner(cluster, snapshot, arena, &now, &node_id);
    if (error || (now.epoch == row->epoch && strcmp(node_id, lost) == 0))
        return error;
    return error_new(CODE_ABORTED, "the volume \"%s\" has got another owner meanwhile; try again",
                     snapshot->source_handle);
}

/* The lock of the data is held: the sweep takes data that has no row yet for a leftover. */
static struct error *
write_incoming(struct engine *engine, const snapshot_record *snapshot, const struct owner *row,
               const char *lost, bool was_here, struct arena *arena)
{
    const struct move_cluster *cluster = atomic_load(&engine->moves);
    volume_record *record = make_record(snapshot, row, lost, was_here, arena);
    struct data data = volume_data(record);
    struct error *error = copy_data(engine, snapshot, record, arena);
    if (!error)
        error = cluster->owners->add_member(cluster->owners->context, lost);
    if (!error)
        error = check_owner_unchanged(cluster, snapshot, row, lost, arena);
    if (!error)
        return move_rows_write(engine, record, arena);
    rows_drop_data(engine, &data);
    return error;
}

static struct error *
take_over(struct engine *engine, const snapshot_record *snapshot, const struct owner *row,
          const char *lost, struct arena *arena)
{
    struct name_lock *name AUTO(name_lock_release) = NULL;
    struct name_lock *from AUTO(name_lock_release) = NULL;
    struct name_lock *to AUTO(name_lock_release) = NULL;
    const char *handle = snapshot->volume->handle;
    bool was_here = false;
    struct error *error = name_lock_take(&engine->locks, "volume", snapshot->volume->name, &name);
    if (!error)
        error = check_absent(engine, snapshot->volume, arena, &was_here);
    if (!error)
        error = lock_snapshot(engine, snapshot, arena, &from);
    if (!error)
        error = data_lock_wait(engine, &volume_rows, handle, DATA_LOCK_WAIT_MS, &to);
    return error ? error : write_incoming(engine, snapshot, row, lost, was_here, arena);
}

/* With its volume. */
static struct error *
get_snapshot(struct engine *engine, const char *handle, struct arena *arena, snapshot_record **out)
{
    struct error *error = snapshot_get_any(engine, handle, arena, out);
    if (!error && !(*out)->volume)
        error = find_left(engine, (*out)->source_handle, arena, &(*out)->volume);
    if (error || ((*out)->state == SNAPSHOT_STATE(READY) && (*out)->volume))
        return error;
    return error_new(CODE_FAILED_PRECONDITION, "\"%s\" is not a snapshot of another node's volume",
                     handle);
}

/* A node that is back before the registry has decided keeps its volume. */
static struct error *
decide(struct engine *engine, const struct move_cluster *cluster, const snapshot_record *snapshot,
       const char *lost, struct arena *arena)
{
    enum move_outcome outcome;
    bool is_back = !has_lost(engine, cluster, lost, snapshot, arena);
    struct error *error = move_decide(engine, snapshot->source_handle,
                                      is_back ? MOVE_ASK_GIVE_UP : MOVE_ASK_SWAP, &outcome);
    if (error || outcome == MOVE_HERE)
        return error;
    return is_back
               ? error_new(CODE_FAILED_PRECONDITION, "node \"%s\", which has the volume, is back",
                           lost)
               : error_new(CODE_ABORTED, "another node has recovered the volume at the same time");
}

struct error *
move_recover(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct move_cluster *cluster = NULL;
    struct owner row;
    const char *lost = "";
    snapshot_record *snapshot;
    struct error *error = get_snapshot(engine, handle, &arena, &snapshot);
    if (!error)
        error = move_find_cluster(engine, &cluster);
    if (!error)
        error = find_owner(cluster, snapshot, &arena, &row, &lost);
    if (!error && strcmp(lost, engine->node_id) == 0)
        error = error_new(CODE_FAILED_PRECONDITION, "the volume \"%s\" is on this node",
                          snapshot->source_handle);
    if (!error && !has_lost(engine, cluster, lost, snapshot, &arena))
        error = error_new(CODE_FAILED_PRECONDITION,
                          "node \"%s\", which has the volume, is not lost: move the volume instead",
                          lost);
    if (!error)
        error = bases_offer(engine, handle);
    if (!error)
        error = take_over(engine, snapshot, &row, lost, &arena);
    return error ? error : decide(engine, cluster, snapshot, lost, &arena);
}
