/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a volume is, and finding it. Used by volume_create.c, volume_change.c and volume_delete.c.
 */
#include "volumes/volume.h"

#include <stdio.h>
#include <string.h>

#include "message/message_map.h"
#include "volumes/data_lock.h"
#include "volumes/move.h"
#include "volumes/move_rows.h"
#include "volumes/volume_use.h"

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

bool
volume_is_ready(const volume_record *volume)
{
    return volume->state == STATE(READY);
}

bool
volume_may_be_in_use(const volume_record *volume)
{
    return volume->state == STATE(READY) || volume->state == STATE(SUPERSEDED);
}

struct error *
volume_from_newer(const volume_record *volume)
{
    return error_new(
        CODE_FAILED_PRECONDITION,
        "the volume \"%s\" is in a state (%d) that a newer version of skycap has given "
        "it: start that version; this one leaves the volume as it is",
        volume->handle, (int)volume->state);
}

struct error *
volume_check_ready(const volume_record *volume)
{
    switch (volume->state) {
    case STATE(READY):
        return NULL;
    case STATE(COPYING):
        return error_new(CODE_ABORTED, "the volume \"%s\" is still being copied; try again",
                         volume->handle);
    case STATE(MOVING):
        return error_new(CODE_ABORTED, "the volume \"%s\" is %s%s; try again", volume->handle,
                         volume->move->node_id[0] ? "moving to node " : "being deleted",
                         volume->move->node_id);
    case STATE(INCOMING):
        return error_new(CODE_ABORTED, "the volume \"%s\" is arriving from node %s; try again",
                         volume->handle, volume->move->node_id);
    case STATE(LEFT):
        return error_new(CODE_UNAVAILABLE, "the volume \"%s\" has moved to node %s", volume->handle,
                         volume->move->node_id);
    case STATE(SUPERSEDED):
        return error_new(CODE_UNAVAILABLE,
                         "the volume \"%s\" was recovered while this node was away, and is on node "
                         "%s now",
                         volume->handle, volume->move->node_id[0] ? volume->move->node_id : "-");
    case STATE(LOST):
        return error_new(CODE_DATA_LOSS,
                         "the volume \"%s\" was lost with the store of this node: recover it from "
                         "a copy on another node, or delete it",
                         volume->handle);
    case STATE(RECEIVING):
        return error_new(CODE_UNAVAILABLE, "the volume \"%s\" is still on node %s", volume->handle,
                         volume->move->node_id);
    case STATE(GONE):
        return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", volume->handle);
    default:
        return volume_from_newer(volume);
    }
}

struct error *
volume_get(struct engine *engine, const char *handle, struct arena *arena, volume_record **out)
{
    struct row row = {0};
    struct error *error = rows_get(engine, &volume_rows, handle, arena, &row);
    *out = (volume_record *)row.record;
    return error ? move_explain_absence(engine, error) : volume_check_ready(*out);
}

struct error *
volume_get_shown(struct engine *engine, const char *handle, struct arena *arena,
                 volume_record **out)
{
    struct error *error = volume_get(engine, handle, arena, out);
    if (!error || error->code != CODE_DATA_LOSS || (*out)->state != STATE(LOST))
        return error;
    error_free(error);
    return NULL;
}

struct error *
volume_check_unused(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct mount_list uses;
    if (volume->n_attachments)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is published on the node \"%s\": unpublish it first",
                         volume->attachments[0]->node_id);
    struct error *error = engine->use->list(engine, volume, arena, &uses);
    if (!error && uses.count)
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the volume is in use at %s: unpublish it first", uses.records[0]->path);
    return error;
}

struct error *
volume_take_source(struct engine *engine, const char *handle, struct arena *arena,
                   struct name_lock **lock, volume_record **out)
{
    move_await_reconciled(engine);
    struct error *error = data_lock_shared(engine, &volume_rows, handle, lock);
    if (!error)
        error = volume_get(engine, handle, arena, out);
    if (!error)
        error = volume_adopt_size(engine, *out);
    return error ? error : engine->use->flush(engine, *out, arena);
}

struct error *
volume_take_superseded(struct engine *engine, const char *handle, struct arena *arena,
                       struct name_lock **lock, volume_record **out)
{
    struct row row;
    struct error *error = data_lock_shared(engine, &volume_rows, handle, lock);
    if (!error)
        error = rows_get(engine, &volume_rows, handle, arena, &row);
    if (error)
        return error;
    *out = (volume_record *)row.record;
    if ((*out)->state != STATE(SUPERSEDED))
        return error_new(CODE_FAILED_PRECONDITION, "the volume \"%s\" was not recovered elsewhere",
                         handle);
    return volume_adopt_size(engine, *out);
}

struct error *
volume_take_moving(struct engine *engine, const char *handle, uint64_t epoch, struct arena *arena,
                   struct name_lock **lock, volume_record **out)
{
    struct row row;
    struct error *error = data_lock_shared(engine, &volume_rows, handle, lock);
    if (!error)
        error = rows_get(engine, &volume_rows, handle, arena, &row);
    if (error)
        return error;
    *out = (volume_record *)row.record;
    if ((*out)->state != STATE(MOVING) || (*out)->epoch != epoch)
        return error_new(CODE_FAILED_PRECONDITION, "the volume \"%s\" is not moving at epoch %ju",
                         handle, (uintmax_t)epoch);
    return volume_adopt_size(engine, *out);
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
        if (move_rows_is_listed(volume) && !volume->ephemeral)
            out->volumes[out->count++] = volume;
    }
    if (page.has_more)
        out->next = ((volume_record *)page.rows[page.count - 1].record)->handle;
    return NULL;
}

/* ---- size and parameters ---- */

struct text_map
volume_parameters(const volume_record *volume, struct arena *arena)
{
    struct text_map all = message_map_read(volume->parameters, volume->n_parameters, arena);
    struct text_map changed =
        message_map_read(volume->mutable_parameters, volume->n_mutable_parameters, arena);
    for (size_t i = 0; i < changed.count; i++)
        text_map_set(&all, arena, changed.pairs[i].key, changed.pairs[i].value);
    return all;
}

struct data_settings
volume_settings(const volume_record *volume, struct arena *arena)
{
    struct text_map parameters = volume_parameters(volume, arena);
    const char *nocow = text_map_find(&parameters, "nocow");
    return (struct data_settings){
        .size_bytes = (uint64_t)volume->size_bytes,
        .compression = text_map_find(&parameters, "compression"),
        .nocow = volume->nocow || (nocow && strcmp(nocow, "true") == 0),
    };
}

struct error *
volume_apply(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct data data = volume_data(volume);
    struct data_settings settings = volume_settings(volume, arena);
    settings.note = rows_note(&volume->base, arena);
    return backend_change(engine->backend, &data, &settings);
}

struct error *
volume_adopt_size(struct engine *engine, volume_record *volume)
{
    struct data data = volume_data(volume);
    struct data_usage usage;
    if (data.kind == KIND_TREE)
        return NULL;
    struct error *error = backend_usage(engine->backend, &data, &usage);
    if (!error && (int64_t)usage.total_bytes > volume->size_bytes)
        volume->size_bytes = (int64_t)usage.total_bytes;
    return error;
}
