/* SPDX-License-Identifier: Apache-2.0 */
/* What an export is based on: see export_base.h. */
#include "volumes/export_base.h"

#include <stdio.h>
#include <string.h>

#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/export_past.h"
#include "volumes/handle.h"
#include "volumes/snapshot.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name

#define FIRST "it is the first export of this volume to this repository"

void
export_base_release(struct export_base *base)
{
    name_lock_release(&base->lock);
}

/* ---- trees ---- */

static bool
is_uuid(const ProtobufCBinaryData *bytes, const uint8_t uuid[16])
{
    return bytes->len == 16 && !memcmp(bytes->data, uuid, 16);
}

static bool
has_same_origin(const export_record *record, const struct btrfs_origin *origin)
{
    return record->kind == EXPORT_KIND(TREE) && record->origin &&
           is_uuid(&record->origin->file_system, origin->file_system) &&
           is_uuid(&record->origin->parent, origin->parent);
}

/* The newest one that is not newer than the snapshot, and of its past. */
static const char *
choose_tree(struct engine *engine, const snapshot_record *snapshot, const struct export_list *list,
            struct export_base *out)
{
    struct btrfs_exported exported;
    bool has_origin = false, has_older = false;
    export_past_read(engine, snapshot, &exported);
    for (size_t i = list->count; i > 0; i--) {
        const export_record *record = list->items[i - 1].record;
        if (!has_same_origin(record, &out->origin))
            continue;
        has_origin = true;
        if (record->origin->generation > out->origin.generation)
            continue;
        has_older = true;
        if ((!out->item || record->origin->generation > out->item->record->origin->generation) &&
            export_past_has(engine, &exported, record))
            out->item = &list->items[i - 1];
    }
    if (out->item)
        return NULL;
    if (!list->count)
        return FIRST;
    if (has_older)
        return "the file system does not know of the earlier exports: it was set back to an "
               "earlier state since, or the volume and the exported snapshots are gone";
    return has_origin ? "the repository has only newer snapshots of this volume"
                      : "the earlier exports are of other subvolumes: the volume was moved, "
                        "restored or made anew since";
}

static struct error *
find_tree(struct engine *engine, const snapshot_record *snapshot, const struct export_list *list,
          int fd, struct arena *arena, struct export_base *out)
{
    struct error *error = btrfs_changes_describe(fd, &out->origin, &out->has_origin);
    if (error)
        return error;
    if (!out->has_origin)
        out->reason = arena_print(arena, "the back end %s cannot tell what has changed in a tree",
                                  backend_of(engine->backend, snapshot->handle)->ops->name);
    else
        out->reason = choose_tree(engine, snapshot, list, out);
    return NULL;
}

/* ---- images ---- */

/* A snapshot on this node with the contents of the export, locked. */
static bool
find_local(struct engine *engine, const export_record *record, struct arena *arena,
           struct export_base *out)
{
    for (size_t i = 0; i < record->n_local_handles; i++) {
        snapshot_record *snapshot;
        struct error *error AUTO(error_cleanup) =
            data_lock_shared(engine, &snapshot_rows, record->local_handles[i], &out->lock);
        if (!error)
            error = snapshot_get_any(engine, record->local_handles[i], arena, &snapshot);
        if (!error && snapshot->state == STATE(READY)) {
            out->local = snapshot_data(snapshot);
            return true;
        }
        name_lock_release(&out->lock);
    }
    return false;
}

static void
choose_image(struct engine *engine, const snapshot_record *snapshot, const struct export_list *list,
             struct arena *arena, struct export_base *out)
{
    struct data data = snapshot_data(snapshot);
    out->reason = FIRST;
    if (list->count && !bases_can_tell_difference(engine, &data)) {
        out->reason = arena_print(arena, "the back end %s cannot tell what has changed in an image",
                                  backend_of(engine->backend, snapshot->handle)->ops->name);
        return;
    }
    for (size_t i = list->count; i > 0; i--) {
        const export_record *record = list->items[i - 1].record;
        out->reason = "no snapshot with the contents of an earlier export is left on this node";
        if (record->kind != EXPORT_KIND(IMAGE) || record->size_bytes > snapshot->size_bytes ||
            !find_local(engine, record, arena, out))
            continue;
        out->item = &list->items[i - 1];
        out->reason = NULL;
        return;
    }
}

/* ---- both ---- */

struct error *
export_base_find(struct engine *engine, const snapshot_record *snapshot,
                 const struct export_list *list, int fd, struct arena *arena,
                 struct export_base *out)
{
    *out = (struct export_base){0};
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i].record->handle, snapshot->handle))
            out->same = &list->items[i];
    if (out->same)
        return NULL;
    if (snapshot_data(snapshot).kind == KIND_TREE)
        return find_tree(engine, snapshot, list, fd, arena, out);
    choose_image(engine, snapshot, list, arena, out);
    return NULL;
}

/* ---- keeping ---- */

static struct error *
keep(struct engine *engine, const snapshot_record *snapshot, const char *repository,
     char handle[BACKEND_HANDLE_SIZE])
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record record = *snapshot;
    struct data from = snapshot_data(snapshot);
    handle_make_for(engine, backend_of(engine->backend, snapshot->handle), handle);
    record.handle = handle;
    record.name = (char *)bases_name(snapshot->source_handle, handle, &arena);
    record.purpose = PURPOSE(BASE);
    record.kept = true;
    record.peer_node = arena_print(&arena, "%s%s", BASES_OF_REPOSITORY, repository);
    record.group_handle = "";
    record.group = NULL;
    record.n_exports = 0;
    struct data to = snapshot_data(&record);
    struct data_settings settings = {.note = rows_note(&record.base, &arena)};
    struct error *error = backend_copy(engine->backend, &from, &to, &settings, NULL);
    if (!error)
        error = rows_insert(engine, &snapshot_rows, &record.base);
    if (error)
        rows_drop_data(engine, &to);
    return error;
}

void
export_base_keep(struct engine *engine, const snapshot_record *snapshot, const char *repository,
                 char handle[BACKEND_HANDLE_SIZE])
{
    struct data data = snapshot_data(snapshot);
    handle[0] = 0;
    if (data.kind != KIND_IMAGE || !bases_can_tell_difference(engine, &data) ||
        !backend_copies_cheaply(engine->backend, &data, &data))
        return;
    struct error *error AUTO(error_cleanup) = keep(engine, snapshot, repository, handle);
    if (!error)
        return;
    handle[0] = 0;
    log_info(engine->log, "no base is kept for the next export",
             LOG_TEXT("snapshot", snapshot->handle), LOG_TEXT("error", error->message));
}

void
export_base_forget(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snapshot_record *snapshot;
    if (!handle[0])
        return;
    struct error *error AUTO(error_cleanup) = snapshot_get_any(engine, handle, &arena, &snapshot);
    if (!error)
        error = bases_delete(engine, snapshot); /* or by bases_tidy */
}
