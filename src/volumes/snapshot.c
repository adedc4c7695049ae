/* SPDX-License-Identifier: Apache-2.0 */
/* What a snapshot is, and finding it. Used by snapshot_create.c and group.c. */
#include "volumes/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "message/message_map.h"
#include "volumes/handle.h"
#include "volumes/spec.h"

#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

struct data
snapshot_data(const snapshot_record *snapshot)
{
    struct data data = {.role = ROLE_SNAPSHOT};
    data.kind =
        snapshot->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE ? KIND_IMAGE : KIND_TREE;
    snprintf(data.handle, sizeof data.handle, "%s", snapshot->handle);
    return data;
}

bool
snapshot_is_replica(const snapshot_record *snapshot)
{
    return snapshot->purpose == SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__REPLICA;
}

bool
snapshot_is_hidden(const snapshot_record *snapshot)
{
    return snapshot->purpose != SKYCAP__RECORDS__SNAPSHOT_RECORD__PURPOSE__USER;
}

struct error *
snapshot_get_any(struct engine *engine, const char *handle, struct arena *arena,
                 snapshot_record **out)
{
    struct row row;
    struct error *error = rows_get(engine, &snapshot_rows, handle, arena, &row);
    *out = error ? NULL : (snapshot_record *)row.record;
    return error;
}

static struct error *
hide(const char *handle, snapshot_record **out)
{
    *out = NULL;
    return error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", handle);
}

struct error *
snapshot_get(struct engine *engine, const char *handle, struct arena *arena, snapshot_record **out)
{
    struct error *error = snapshot_get_any(engine, handle, arena, out);
    return !error && snapshot_is_hidden(*out) ? hide(handle, out) : error;
}

struct error *
snapshot_get_shown(struct engine *engine, const char *handle, struct arena *arena,
                   snapshot_record **out)
{
    struct error *error = snapshot_get_any(engine, handle, arena, out);
    if (error || (snapshot_is_replica(*out) && (*out)->state == STATE(READY)))
        return error;
    return snapshot_is_hidden(*out) ? hide(handle, out) : NULL;
}

const char *
snapshot_consistency(struct engine *engine, const snapshot_record *snapshot, struct arena *arena)
{
    struct data to = snapshot_data(snapshot);
    struct data from = to;
    struct text_map parameters =
        message_map_read(snapshot->parameters, snapshot->n_parameters, arena);
    snprintf(from.handle, sizeof from.handle, "%s", snapshot->source_handle);
    bool is_torn = to.kind == KIND_TREE && spec_accepts_torn_copies(&parameters) &&
                   !backend_copies_instantly(engine->backend, &from, &to);
    return is_torn ? "files" : "instant";
}

/* ---- records ---- */

snapshot_record *
snapshot_make_record(const struct engine *engine, const char *name, const volume_record *source,
                     const struct text_map *parameters, struct arena *arena)
{
    snapshot_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__snapshot_record__init(record);
    record->handle = arena_alloc(arena, BACKEND_HANDLE_SIZE);
    handle_make_for(engine, backend_of(engine->backend, source->handle), record->handle);
    record->name = (char *)name;
    record->source_handle = source->handle;
    record->kind = source->kind;
    record->fs_type = source->fs_type;
    record->size_bytes = source->size_bytes;
    record->formatted_bytes = source->formatted_bytes;
    record->blank = source->blank;
    record->sector_bytes = source->sector_bytes;
    record->nocow = volume_settings(source, arena).nocow;
    record->created_ns = clock_unix_ns();
    record->epoch = source->state == SKYCAP__RECORDS__VOLUME_RECORD__STATE__SUPERSEDED
                        ? source->recovered_epoch - 1
                        : source->epoch;
    message_map_write(parameters, arena,
                      &skycap__records__snapshot_record__parameters_entry__descriptor,
                      &record->parameters, &record->n_parameters);
    return record;
}

struct data_note
snapshot_note(snapshot_record *snapshot, group_record *group, struct arena *arena)
{
    snapshot->group = group;
    struct data_note note = rows_note(&snapshot->base, arena);
    snapshot->group = NULL;
    return note;
}

/* ---- listing ---- */

static bool
is_listed(const snapshot_record *snapshot, const char *source_handle)
{
    return !snapshot_is_hidden(snapshot) &&
           (!source_handle || strcmp(snapshot->source_handle, source_handle) == 0);
}

/* Adds what is listed of a page. Returns whether something does not fit. */
static bool
add_page(const struct row_page *page, const char *source_handle, size_t limit, struct arena *arena,
         struct snapshot_page *out)
{
    snapshot_record **before = out->snapshots;
    out->snapshots = arena_alloc(arena, (out->count + page->count) * sizeof *before);
    if (out->count)
        memcpy(out->snapshots, before, out->count * sizeof *before);
    for (size_t i = 0; i < page->count; i++) {
        snapshot_record *snapshot = (snapshot_record *)page->rows[i].record;
        if (!is_listed(snapshot, source_handle))
            continue;
        if (limit && out->count == limit)
            return true;
        out->snapshots[out->count++] = snapshot;
    }
    return false;
}

/*
 * Rows that are not listed may be any number: reads on until there are enough. A filter by source
 * reads all at once.
 */
struct error *
snapshot_list(struct engine *engine, const char *source_handle, const char *after, size_t limit,
              struct arena *arena, struct snapshot_page *out)
{
    struct row_page page = {.has_more = true};
    bool is_full = false;
    *out = (struct snapshot_page){0};
    while (page.has_more && !is_full) {
        struct error *error =
            rows_list(engine, &snapshot_rows, after, source_handle ? 0 : limit, arena, &page);
        if (error)
            return error;
        is_full = add_page(&page, source_handle, limit, arena, out) ||
                  (limit && out->count == limit && page.has_more);
        if (page.count)
            after = rows_handle(&snapshot_rows, page.rows[page.count - 1].record);
    }
    if (is_full)
        out->next = out->snapshots[out->count - 1]->handle;
    return NULL;
}
