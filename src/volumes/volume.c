/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and deleting volumes. Creating is in volume_create.c, changing in volume_change.c. */
#include "volumes/volume.h"

#include <stdio.h>
#include <string.h>

#include "volumes/copy.h"
#include "volumes/stage.h"

#define STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name

struct data
volume_data(const volume_record *volume)
{
    struct data data = {.role = ROLE_VOLUME};
    data.kind =
        volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE ? KIND_IMAGE : KIND_TREE;
    snprintf(data.handle, sizeof data.handle, "%s", volume->handle);
    return data;
}

struct error *
volume_find_data(struct engine *engine, const volume_record *volume, char *out, size_t size)
{
    struct data data = volume_data(volume);
    return backend_path(engine->backend, &data, out, size);
}

struct error *
volume_get(struct engine *engine, const char *handle, struct arena *arena, volume_record **out)
{
    struct row row;
    struct error *error = rows_get(engine, &volume_rows, handle, arena, &row);
    if (error)
        return error;
    *out = (volume_record *)row.record;
    if ((*out)->state == STATE(DELETING))
        return error_new(CODE_NOT_FOUND, "the volume \"%s\" is being deleted", handle);
    if ((*out)->state == STATE(COPYING))
        return error_new(CODE_ABORTED, "the volume \"%s\" is still being copied; try again",
                         handle);
    return NULL;
}

struct error *
volume_list(struct engine *engine, const char *after, size_t limit, struct arena *arena,
            struct volume_page *out)
{
    struct row_page page;
    *out = (struct volume_page){0};
    struct error *error = rows_list(engine, &volume_rows, after, limit, arena, &page);
    if (error)
        return error;
    out->volumes = arena_alloc(arena, page.count * sizeof *out->volumes);
    for (size_t i = 0; i < page.count; i++) {
        volume_record *volume = (volume_record *)page.rows[i].record;
        if (volume->state == STATE(READY) && !volume->ephemeral)
            out->volumes[out->count++] = volume;
    }
    if (page.has_more)
        out->next = ((volume_record *)page.rows[page.count - 1].record)->handle;
    return NULL;
}

/* ---- deleting ---- */

static struct error *
check_unused(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct mount_list uses;
    if (volume->n_attachments)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is published on the node \"%s\": unpublish it first",
                         volume->attachments[0]->node_id);
    struct error *error = stage_list_uses(engine, volume, arena, &uses);
    if (!error && uses.count)
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the volume is in use at %s: unpublish it first", uses.records[0]->path);
    return error;
}

/* One durable write, then the data goes; what a crash leaves of it, the next start sweeps away. */
static struct error *
delete_row_and_data(struct engine *engine, struct row *row)
{
    volume_record *volume = (volume_record *)row->record;
    struct data data = volume_data(volume);
    struct error *error = rows_delete(engine, &volume_rows, &volume->base);
    if (error)
        return error;
    error = backend_remove(engine->backend, &data);
    if (error) {
        /* The volume is gone for everybody; only its space is not back yet. */
        log_warn(engine->log, "data of a deleted volume stays until the next start",
                 LOG_TEXT("handle", data.handle), LOG_TEXT("error", error->message));
        error_free(error);
    }
    return NULL;
}

/* `row->record` is NULL where there is no such volume. */
static struct error *
find_row(struct engine *engine, const char *handle, struct arena *arena, struct row *row)
{
    struct error *error = rows_get(engine, &volume_rows, handle, arena, row);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    row->record = NULL;
    return NULL;
}

/* The volume's key is held. Read under it: somebody may have attached it meanwhile, or its copy may have ended. */
static struct error *
delete_held(struct engine *engine, const char *handle, struct arena *arena)
{
    struct key *data AUTO(keys_release) = NULL;
    struct row row;
    struct error *error = find_row(engine, handle, arena, &row);
    if (!error && row.record && ((volume_record *)row.record)->state == STATE(COPYING)) {
        error = copy_abandon(engine, handle);
        if (!error)
            error = find_row(engine, handle, arena, &row);
    }
    if (error || !row.record)
        return error;
    error = check_unused(engine, (volume_record *)row.record, arena);
    if (!error)
        error = copy_hold_alone(engine, &volume_rows, handle, &data);
    return error ? error : delete_row_and_data(engine, &row);
}

struct error *
volume_delete(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct key *key AUTO(keys_release) = NULL;
    struct row row;
    struct error *error = find_row(engine, handle, &arena, &row);
    if (error || !row.record)
        return error;
    error = keys_take(&engine->keys, "volume", ((volume_record *)row.record)->name, &key);
    return error ? error : delete_held(engine, handle, &arena);
}
