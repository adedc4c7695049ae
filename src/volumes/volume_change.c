/* SPDX-License-Identifier: Apache-2.0 */
/* Changing volumes: size, mutable parameters, attachments. */
#include <string.h>

#include "message/message_map.h"
#include "volumes/data_lock.h"
#include "volumes/held.h"
#include "volumes/mend.h"
#include "volumes/move.h"
#include "volumes/spec.h"
#include "volumes/volume.h"
#include "volumes/volume_use.h"

/* ---- size and parameters ---- */

struct error *
volume_expand(struct engine *engine, const char *handle, int64_t required_bytes,
              int64_t limit_bytes, int64_t *size_bytes)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct error *error = held_take(engine, handle, 0, &arena, &held);
    /* Waits for copies: a copy has the size in its row. */
    if (!error)
        error = data_lock_wait(engine, &volume_rows, handle, DATA_LOCK_WAIT_MS, &lock);
    int64_t told = error ? 0 : held.record->size_bytes;
    if (!error)
        error = volume_adopt_size(engine, held.record);
    if (error)
        return error;
    int64_t now = held.record->size_bytes;
    *size_bytes = now;
    if (limit_bytes && now > limit_bytes)
        return error_new(CODE_OUT_OF_RANGE,
                         "the volume has %jd bytes already, and the limit is %jd", (intmax_t)now,
                         (intmax_t)limit_bytes);
    if (required_bytes <= now)
        return now == told ? mend_volume(engine, &held, &arena) : held_save(engine, &held, &arena);
    error = spec_choose_size(volume_data(held.record).kind, required_bytes, limit_bytes, now, now,
                             size_bytes);
    if (error)
        return error;
    held.record->size_bytes = *size_bytes;
    /*
     * The data first: data larger than the row says does no harm; smaller data would make the row
     * wrong.
     */
    error = volume_apply(engine, held.record, &arena);
    return error ? error : held_save_row(engine, &held);
}

/* False: the request changes nothing. */
static bool
merge_parameters(volume_record *volume, const struct text_map *wanted, struct arena *arena)
{
    struct text_map merged =
        message_map_read(volume->mutable_parameters, volume->n_mutable_parameters, arena);
    bool asks = false;
    for (size_t i = 0; i < wanted->count; i++) {
        if (spec_is_sidecar_key(wanted->pairs[i].key))
            continue;
        text_map_set(&merged, arena, wanted->pairs[i].key, wanted->pairs[i].value);
        asks = true;
    }
    message_map_write(&merged, arena,
                      &skycap__records__volume_record__mutable_parameters_entry__descriptor,
                      &volume->mutable_parameters, &volume->n_mutable_parameters);
    return asks;
}

struct error *
volume_modify(struct engine *engine, const char *handle, const struct text_map *mutable_parameters)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = held_take(engine, handle, 0, &arena, &held);
    if (!error)
        error = volume_adopt_size(engine, held.record);
    if (!error)
        error = spec_check_mutable(mutable_parameters, volume_data(held.record).kind);
    if (error)
        return error;
    volume_record *volume = held.record;
    if (!merge_parameters(volume, mutable_parameters, &arena))
        return NULL;
    error = volume_apply(engine, volume, &arena);
    if (!error)
        error = engine->use->apply_parameters(engine, volume, &arena);
    return error ? error : held_save_row(engine, &held);
}

/* ---- attachments ---- */

static bool
is_multi_node(const volume_capability *capability)
{
    switch (capability->access_mode->mode) {
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY:
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER:
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER:
        return true;
    default:
        return false;
    }
}

static bool
same_capability(const volume_capability *a, const volume_capability *b)
{
    return a->access_type_case == b->access_type_case &&
           a->access_mode->mode == b->access_mode->mode;
}

static struct error *
check_attachments(const volume_record *volume, const char *node_id, bool read_only,
                  const volume_capability *capability, bool *is_there)
{
    *is_there = false;
    for (size_t i = 0; i < volume->n_attachments; i++) {
        const Skycap__Records__Attachment *attachment = volume->attachments[i];
        if (strcmp(attachment->node_id, node_id) == 0) {
            *is_there = true;
            if (attachment->read_only != read_only ||
                !same_capability(attachment->capability, capability))
                return error_new(CODE_ALREADY_EXISTS,
                                 "the volume is published on the node \"%s\" in another way",
                                 node_id);
        } else if (!is_multi_node(capability)) {
            return error_new(CODE_FAILED_PRECONDITION,
                             "the volume is published on the node \"%s\" already",
                             attachment->node_id);
        }
    }
    return NULL;
}

static void
add_attachment(volume_record *volume, struct arena *arena, const char *node_id, bool read_only,
               const volume_capability *capability)
{
    Skycap__Records__Attachment *added = arena_alloc(arena, sizeof *added);
    skycap__records__attachment__init(added);
    added->node_id = (char *)node_id;
    added->read_only = read_only;
    added->capability = (volume_capability *)capability;
    Skycap__Records__Attachment **grown =
        arena_alloc(arena, (volume->n_attachments + 1) * sizeof(void *));
    if (volume->n_attachments)
        memcpy(grown, volume->attachments, volume->n_attachments * sizeof(void *));
    grown[volume->n_attachments++] = added;
    volume->attachments = grown;
}

/*
 * After a failed write, the row decides whether the change was made; only the note beside the data
 * may be missing.
 */
static void
forget_unwritten(struct engine *engine, const char *handle, struct arena *arena)
{
    struct row row;
    struct error *error AUTO(error_cleanup) = rows_get(engine, &volume_rows, handle, arena, &row);
    if (!error && !((volume_record *)row.record)->n_attachments)
        attached_remove(engine, handle);
}

struct error *
volume_attach(struct engine *engine, const char *handle, const char *node_id, bool read_only,
              const volume_capability *capability, uint64_t limit)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    bool is_there = false;
    struct error *error = held_take(engine, handle, 0, &arena, &held);
    if (!error)
        error = check_attachments(held.record, node_id, read_only, capability, &is_there);
    if (!error && !is_there)
        error = attached_add(engine, handle, limit);
    if (error || is_there)
        return error;
    add_attachment(held.record, &arena, node_id, read_only, capability);
    error = held_save(engine, &held, &arena);
    if (error && !error->in_doubt)
        forget_unwritten(engine, handle, &arena);
    return error;
}

struct error *
volume_detach(struct engine *engine, const char *handle, const char *node_id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = held_take(engine, handle, 0, &arena, &held);
    if (error)
        return error;
    volume_record *volume = held.record;
    size_t kept = 0;
    for (size_t i = 0; i < volume->n_attachments; i++)
        if (node_id[0] && strcmp(volume->attachments[i]->node_id, node_id) != 0)
            volume->attachments[kept++] = volume->attachments[i];
    bool is_changed = kept != volume->n_attachments;
    volume->n_attachments = kept;
    if (is_changed)
        error = held_save(engine, &held, &arena);
    if (!error && !kept)
        attached_remove(engine, handle);
    return error;
}
