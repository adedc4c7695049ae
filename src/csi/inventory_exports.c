/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of a snapshot: see inventory_exports.h. */
#include "csi/inventory_exports.h"

#include "base/clock.h"
#include "csi/ids.h"
#include "message/message_time.h"
#include "repository/patience.h"
#include "volumes/export.h"

#define LOOK_MS 1000u /* how long a request waits for all repositories */

static bool
is_removed(struct engine *engine, const snapshot_export *export, struct arena *arena)
{
    struct repository_place place;
    bool has = true;
    struct error *error AUTO(error_cleanup) =
        repository_pool_find(engine, export->repository, arena, &place);
    if (!error)
        error = repository_has_snapshot(&place.options, export->id, &has);
    return !error && !has;
}

void
inventory_drop_removed(struct engine *engine, snapshot_record *record, struct arena *arena)
{
    struct patience patience AUTO(patience_end) = {.until_ms = clock_now_ms() + LOOK_MS};
    size_t count = 0;
    patience_begin(&patience);
    for (size_t i = 0; i < record->n_exports; i++)
        if (!is_removed(engine, record->exports[i], arena))
            record->exports[count++] = record->exports[i];
    record->n_exports = count;
}

static Skycap__V1__SnapshotExportInfo *
add(Skycap__V1__SnapshotInfo *info, const char *repository, struct arena *arena)
{
    Skycap__V1__SnapshotExportInfo *one = arena_alloc(arena, sizeof *one);
    skycap__v1__snapshot_export_info__init(one);
    one->repository = (char *)repository;
    info->exports[info->n_exports++] = one;
    return one;
}

void
inventory_fill_exports(const snapshot_record *record, struct arena *arena,
                       Skycap__V1__SnapshotInfo *info)
{
    info->exports = arena_alloc(arena, record->n_exports * sizeof(void *));
    for (size_t i = 0; i < record->n_exports; i++) {
        const snapshot_export *from = record->exports[i];
        Skycap__V1__SnapshotExportInfo *one = add(info, from->repository, arena);
        one->id = from->id;
        one->exported = message_time_new(from->exported_ns, arena);
        one->full_reason = from->full_reason;
        one->bytes_read = from->bytes_read;
        one->bytes_stored = from->bytes_stored;
    }
}

static struct error *
add_if_running(struct engine *engine, const snapshot_record *record, const char *repository,
               struct arena *arena, Skycap__V1__SnapshotInfo *info)
{
    operation_record *operation;
    const char *id = export_operation(record->handle, repository, arena);
    struct error *error = ops_get(engine->ops, id, arena, &operation);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (operation->state == OPERATION_STATE(SUCCEEDED))
        return NULL;
    Skycap__V1__SnapshotExportInfo *one = add(info, repository, arena);
    one->operation = ids_print(ID_SNAPSHOT, id, arena);
    one->percent = ops_percent(operation);
    one->error = operation->error_message;
    return NULL;
}

struct error *
inventory_add_running(struct engine *engine, const snapshot_record *record, struct arena *arena,
                      Skycap__V1__SnapshotInfo *info)
{
    struct text_list names = {0};
    struct error *error = engine->repositories ? repository_pool_list(engine, arena, &names) : NULL;
    if (error)
        return error;
    Skycap__V1__SnapshotExportInfo **all =
        arena_alloc(arena, (info->n_exports + names.count) * sizeof *all);
    for (size_t i = 0; i < info->n_exports; i++)
        all[i] = info->exports[i];
    info->exports = all;
    for (size_t i = 0; i < names.count && !error; i++)
        if (!export_find(record, names.items[i]))
            error = add_if_running(engine, record, names.items[i], arena, info);
    return error;
}
