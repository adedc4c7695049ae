/* SPDX-License-Identifier: Apache-2.0 */
/* What an export is based on: see export_base.h. */
#include "volumes/export_base.h"

#include <stdio.h>
#include <string.h>

#include "exports/export_page.h"
#include "message/message_bytes.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/export_past.h"
#include "volumes/handle.h"
#include "volumes/snapshot.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name
#define PURPOSE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__##name

#define FIRST "it is the first export of this volume to this repository"

/* What is known of the exports of the snapshot's volume while they are looked at one by one. */
struct search {
    const struct export_base_request *request;
    struct export_base *out;
    size_t count;
    bool is_tree;
    bool can_tell;                  /* of an image: what has changed since */
    struct btrfs_exported exported; /* of a tree */
    bool has_origin, has_older;     /* of a tree: there are such exports */
};

static const struct export_item *
keep_item(const struct search *search, const struct export_item *item)
{
    struct export_item *kept = arena_alloc(search->request->arena, sizeof *kept);
    *kept = (struct export_item){arena_string(search->request->arena, item->id),
                                 message_bytes_copy(&item->record->base, search->request->arena)};
    return kept;
}

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
static void
look_at_tree(struct search *search, const struct export_item *item)
{
    struct export_base *out = search->out;
    const export_record *record = item->record;
    if (!out->has_origin || !has_same_origin(record, &out->origin))
        return;
    search->has_origin = true;
    if (record->origin->generation > out->origin.generation)
        return;
    search->has_older = true;
    if ((!out->item || record->origin->generation > out->item->record->origin->generation) &&
        export_past_has(search->request->engine, &search->exported, record))
        out->item = keep_item(search, item);
}

static const char *
tell_why_tree(const struct search *search)
{
    if (!search->out->has_origin)
        return arena_print(
            search->request->arena, "the back end %s cannot tell what has changed in a tree",
            backend_of(search->request->engine->backend, search->request->snapshot->handle)
                ->ops->name);
    if (search->out->item)
        return NULL;
    if (!search->count)
        return FIRST;
    if (search->has_older)
        return "the file system does not know of the earlier exports: it was set back to an "
               "earlier state since, or the volume and the exported snapshots are gone";
    return search->has_origin
               ? "the repository has only newer snapshots of this volume"
               : "the earlier exports are of other subvolumes: the volume was moved, "
                 "restored or made anew since";
}

/* ---- images ---- */

/* A snapshot on this node with the contents of the export, locked; instead of an earlier one. */
static bool
find_local(const struct search *search, const export_record *record)
{
    struct engine *engine = search->request->engine;
    for (size_t i = 0; i < record->n_local_handles; i++) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        struct name_lock *lock AUTO(name_lock_release) = NULL;
        snapshot_record *snapshot;
        struct error *error AUTO(error_cleanup) =
            data_lock_shared(engine, &snapshot_rows, record->local_handles[i], &lock);
        if (!error)
            error = snapshot_get_any(engine, record->local_handles[i], &arena, &snapshot);
        if (error || snapshot->state != STATE(READY))
            continue;
        name_lock_release(&search->out->lock);
        search->out->lock = STEAL(lock);
        snapshot = message_bytes_copy(&snapshot->base, search->request->arena);
        search->out->local = snapshot_data(snapshot);
        return true;
    }
    return false;
}

static bool
is_newer(const export_record *record, const export_record *other)
{
    return record->taken_ns != other->taken_ns ? record->taken_ns > other->taken_ns
                                               : record->exported_ns > other->exported_ns;
}

/* The newest one of which such a snapshot is left. */
static void
look_at_image(struct search *search, const struct export_item *item)
{
    const struct export_item *best = search->out->item;
    const export_record *record = item->record;
    if (search->can_tell && record->kind == EXPORT_KIND(IMAGE) &&
        record->size_bytes <= search->request->snapshot->size_bytes &&
        (!best || is_newer(record, best->record)) && find_local(search, record))
        search->out->item = keep_item(search, item);
}

static const char *
tell_why_image(const struct search *search)
{
    if (!search->count)
        return FIRST;
    if (!search->can_tell)
        return arena_print(
            search->request->arena, "the back end %s cannot tell what has changed in an image",
            backend_of(search->request->engine->backend, search->request->snapshot->handle)
                ->ops->name);
    return search->out->item
               ? NULL
               : "no snapshot with the contents of an earlier export is left on this node";
}

/* ---- both ---- */

static struct error *
look(const struct export_item *item, void *context)
{
    struct search *search = context;
    if (strcmp(item->record->volume_handle, search->request->snapshot->source_handle) != 0)
        return NULL;
    if (search->request->incomplete && !strcmp(item->id, search->request->incomplete)) {
        search->out->aside = keep_item(search, item);
        return NULL;
    }
    search->count++;
    if (!strcmp(item->record->handle, search->request->snapshot->handle))
        search->out->same = keep_item(search, item);
    if (search->is_tree)
        look_at_tree(search, item);
    else
        look_at_image(search, item);
    return NULL;
}

struct error *
export_base_find(const struct export_base_request *request, struct export_base *out)
{
    struct data data = snapshot_data(request->snapshot);
    struct search search = {.request = request,
                            .out = out,
                            .is_tree = data.kind == KIND_TREE,
                            .can_tell = bases_can_tell_difference(request->engine, &data)};
    struct error *error = NULL;
    *out = (struct export_base){0};
    if (search.is_tree) {
        error = btrfs_changes_describe(request->fd, &out->origin, &out->has_origin);
        export_past_read(request->engine, request->snapshot, &search.exported);
    }
    if (!error)
        error = export_page_walk(request->repository, look, &search);
    if (!error)
        out->reason = search.is_tree ? tell_why_tree(&search) : tell_why_image(&search);
    return error;
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
        error_free(bases_delete(engine, snapshot)); /* or by bases_tidy */
}
