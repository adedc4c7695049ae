/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing: see publish.h. */
#include "volumes/publish.h"

#include <string.h>

#include "volumes/mounts.h"

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* ---- may it be published there as well? ---- */

/* By the specification's table, which has readers of a single node among them. */
static bool
is_exclusive(const volume_capability *capability)
{
    return capability->access_mode->mode == MODE(SINGLE_NODE_WRITER) ||
           capability->access_mode->mode == MODE(SINGLE_NODE_READER_ONLY) ||
           capability->access_mode->mode == MODE(SINGLE_NODE_SINGLE_WRITER);
}

struct error *
publish_check_others(const struct mount_list *uses, const struct use *use)
{
    for (size_t i = 0; i < uses->count; i++) {
        const mount_record *other = uses->records[i];
        if (!mount_rows_is_publication(other) || strcmp(other->path, use->path) == 0)
            continue;
        if (is_exclusive(other->capability) || is_exclusive(use->capability))
            return error_new(CODE_FAILED_PRECONDITION,
                             "the volume is published at %s, and its access mode allows one place "
                             "only; unpublish it there first",
                             other->path);
    }
    return NULL;
}

struct error *
publish_check_staging(const struct mount_list *uses, const struct use *use,
                      const mount_record **out)
{
    const mount_record *staging = *out = mount_rows_find(uses, use->staging_path);
    if (!staging)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is not staged at \"%s\": call NodeStageVolume first",
                         use->staging_path);
    if (place_is_block(staging->capability) != place_is_block(use->capability))
        return error_new(CODE_FAILED_PRECONDITION, "the volume is staged %s",
                         place_is_block(staging->capability) ? "as a block device"
                                                             : "as a file system");
    if (staging->read_only && !use->read_only)
        return error_new(CODE_FAILED_PRECONDITION, "the volume is staged for reading only");
    return NULL;
}

static struct error *
check_staged(struct engine *engine, const volume_record *volume, const struct mount_list *uses,
             const struct use *use)
{
    const mount_record *staging;
    struct error *error = publish_check_staging(uses, use, &staging);
    if (error)
        return error;
    struct use staged = stage_use_of(staging);
    bool is_there;
    error = place_is_used(engine, volume, &staged, &is_there);
    if (!error && !is_there)
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the volume's staging at %s is gone: call NodeStageVolume again",
                          use->staging_path);
    return error;
}

/* ---- publishing ---- */

/* `uses` are those that are really there; a row at the path that is not is repaired. */
static struct error *
publish_held(struct engine *engine, struct held_volume *held, const struct use *use,
             struct arena *arena)
{
    mount_record *record;
    bool is_new;
    struct error *error =
        stage_remember_use(engine, held->record->handle, use, arena, &record, &is_new);
    if (error)
        return error;
    error = use->staging_path[0] ? place_staged(engine, held->record, use, !is_new, arena)
                                 : place_volume(engine, held, use, !is_new, arena);
    if (error && is_new)
        error_free(mount_rows_delete(engine, record)); /* what stays, the next request repairs */
    if (!error)
        place_try_parameters(engine, held->record, use, arena);
    return error;
}

/* Publications that are gone, as after a reboot, are forgotten; one that is to be made again just so is repaired. */
static struct error *
list_uses(struct engine *engine, const volume_record *volume, const struct use *wanted,
          struct arena *arena, struct mount_list *out)
{
    struct mount_list rows;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    *out = rows;
    out->count = 0;
    for (size_t i = 0; i < rows.count && !error; i++) {
        struct use use = stage_use_of(rows.records[i]);
        bool is_there = true;
        bool is_wanted =
            strcmp(use.path, wanted->path) == 0 && !stage_contradicts(rows.records[i], wanted);
        if (mount_rows_is_publication(rows.records[i]) && !is_wanted)
            error = place_is_used(engine, volume, &use, &is_there);
        if (is_there)
            out->records[out->count++] = rows.records[i];
        else if (!error)
            error = mount_rows_delete(engine, rows.records[i]);
    }
    return error;
}

struct error *
publish_volume(struct engine *engine, const char *handle, const struct use *use)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct mount_list uses;
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (!error)
        error = place_check_capability(held.record, use->capability);
    if (!error)
        error = list_uses(engine, held.record, use, &arena, &uses);
    if (!error)
        error = stage_check_same(&uses, use);
    if (!error)
        error = check_staged(engine, held.record, &uses, use);
    if (!error)
        error = publish_check_others(&uses, use);
    return error ? error : publish_held(engine, &held, use, &arena);
}

/* It goes when it is unpublished, so it is published once. */
static struct error *
check_alone(struct engine *engine, const volume_record *volume, const char *path,
            struct arena *arena)
{
    struct mount_list uses;
    struct error *error = stage_list_uses(engine, volume, arena, &uses);
    for (size_t i = 0; i < uses.count && !error; i++)
        if (strcmp(uses.records[i]->path, path) != 0)
            error =
                error_new(CODE_FAILED_PRECONDITION,
                          "the ephemeral volume is published at %s already", uses.records[i]->path);
    return error;
}

struct error *
publish_ephemeral(struct engine *engine, const char *handle, const struct use *use)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (!error)
        error = place_check_capability(held.record, use->capability);
    if (!error)
        error = check_alone(engine, held.record, use->path, &arena);
    return error ? error : publish_held(engine, &held, use, &arena);
}

struct error *
publish_apply_parameters(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct mount_list rows;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    for (size_t i = 0; i < rows.count && !error; i++) {
        struct use use = stage_use_of(rows.records[i]);
        error = place_apply_parameters(engine, volume, &use, arena);
    }
    return error;
}

/* ---- and back ---- */

/* A mount without a row is ours if it shows the volume: the rows may have been rebuilt. */
static struct error *
check_unknown(struct engine *engine, const volume_record *volume, const char *path)
{
    bool is_ours = false;
    if (!mounts_is_point(path))
        return NULL;
    struct error *error = volume ? place_is_at(engine, volume, path, &is_ours) : NULL;
    if (error || is_ours)
        return error;
    return error_new(CODE_FAILED_PRECONDITION,
                     "what is mounted at %s was not published by this node: unmount it by hand",
                     path);
}

static bool
reads_raw(const mount_record *record)
{
    return mount_rows_is_publication(record) && record->read_only &&
           place_is_block(record->capability);
}

bool
publish_is_last_reader(const struct mount_list *uses, const mount_record *gone)
{
    if (!reads_raw(gone))
        return false;
    for (size_t i = 0; i < uses->count; i++)
        if (uses->records[i] != gone && reads_raw(uses->records[i]))
            return false;
    return true;
}

struct error *
publish_undo(struct engine *engine, const char *handle, const char *path)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct mount_list rows = {0};
    struct error *error = held_take(engine, handle, STAGE_WAIT_MS, &arena, &held);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        error = NULL;
    }
    if (!error)
        error = mount_rows_list(engine, handle, &arena, &rows);
    if (error)
        return error;
    const mount_record *record = mount_rows_find(&rows, path);
    if (!record)
        error = check_unknown(engine, held.record, path);
    if (!error)
        error = points_remove_with_path(path);
    if (!error && record && held.record && publish_is_last_reader(&rows, record))
        error = place_release_devices(engine, held.record, true);
    return error || !record ? error : mount_rows_delete(engine, record);
}
