/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating a volume, empty or from a source.
 *
 * Long copies are made by an operation (copy.h); everything else is made before the call returns.
 *
 * After a power failure before the row is written, there is only data that nothing refers to, which
 * the next start removes. After the row is written, the volume exists whether the answer arrived or
 * not, and a repeated request finds it.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "message/message_map.h"
#include "volumes/capability.h"
#include "volumes/copy.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/remote_open.h"
#include "volumes/replica.h"
#include "volumes/snapshot.h"
#include "volumes/spec.h"
#include "volumes/volume.h"

#define DEFAULT_SECTOR_BYTES 4096u
#define STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name

/* The source of the new volume's data. */
struct source {
    enum source_kind kind;
    struct data data;
    int64_t size_bytes;
    const char *fs_type;
    int64_t formatted_bytes;
    bool blank;
    uint32_t sector_bytes;
    bool nocow;
    struct name_lock *held; /* the lock on it, so that nobody deletes it meanwhile */
    /* Of a source on another node, until the copy has started: the handle of the snapshot there. */
    const char *remote;
    struct remote_source remote_source;
    const struct remote_data *opened_by;
};

static struct text_map
parameters_of(const volume_record *record, struct arena *arena)
{
    return message_map_read(record->parameters, record->n_parameters, arena);
}

/* ---- is it the same request again? ---- */

static bool
same_source(const volume_record *record, const struct volume_request *request)
{
    const Csi__V1__VolumeContentSource *source = record->source;
    switch (request->source_kind) {
    case SOURCE_NONE:
        return !source && !record->import;
    case SOURCE_EXPORT:
        return record->import && strcmp(record->import->id, request->import->id) == 0 &&
               strcmp(record->import->repository, request->import->repository) == 0;
    case SOURCE_VOLUME:
        return source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME &&
               strcmp(source->volume->volume_id, request->source_handle) == 0;
    case SOURCE_SNAPSHOT:
        return source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT &&
               strcmp(source->snapshot->snapshot_id, request->source_handle) == 0;
    }
    return false;
}

static bool
fits_size(const volume_record *record, const struct volume_request *request)
{
    return record->size_bytes >= request->required_bytes &&
           (!request->limit_bytes || record->size_bytes <= request->limit_bytes) &&
           (!record->asked_capacity ||
            record->asked_capacity->required_bytes == request->required_bytes);
}

/* The users of a raw device may have made a file system on it. */
static bool
has_file_system(const volume_record *record, const char *wanted)
{
    return strcmp(wanted, record->fs_type) == 0 || (!wanted[0] && capability_any_block(record));
}

/* What differs between the volume and the request; NULL if nothing does. */
static const char *
find_difference(const volume_record *record, const struct volume_request *request,
                struct arena *arena)
{
    struct text_map parameters = parameters_of(record, arena);
    struct text_map changeable = message_map_read(record->asked_mutable_parameters,
                                                  record->n_asked_mutable_parameters, arena);
    struct volume_spec spec;
    struct error *error AUTO(error_cleanup) = spec_make(request, 0, &spec);
    if (!fits_size(record, request))
        return "size";
    if (!same_source(record, request))
        return "source";
    if (!spec_same_parameters(&parameters, &request->parameters))
        return "parameters";
    if (!spec_same_parameters(&changeable, &request->mutable_parameters))
        return "mutable parameters";
    if (error || (int)spec.kind != (int)record->kind || !has_file_system(record, spec.fs_type))
        return "capabilities";
    return NULL;
}

static struct error *
answer_existing(volume_record *record, const struct volume_request *request, struct arena *arena,
                volume_record **out)
{
    const char *difference = find_difference(record, request, arena);
    bool is_gone = record->state == STATE(SUPERSEDED) && !record->move->node_id[0];
    if (move_rows_is_deletion(record) || is_gone)
        return volume_check_ready(record);
    if (difference)
        return error_new(CODE_ALREADY_EXISTS, "the volume \"%s\" exists with other %s",
                         request->name, difference);
    *out = record;
    return NULL;
}

/* ---- the source ---- */

static struct error *
find_volume_source(struct engine *engine, const char *handle, struct arena *arena,
                   struct source *out)
{
    volume_record *volume;
    struct error *error = volume_take_source(engine, handle, arena, &out->held, &volume);
    if (error)
        return error_wrap(error, "source");
    out->kind = SOURCE_VOLUME;
    out->data = volume_data(volume);
    out->size_bytes = volume->size_bytes;
    out->fs_type = volume->fs_type;
    out->formatted_bytes = volume->formatted_bytes;
    out->blank = volume->blank;
    out->sector_bytes = volume->sector_bytes;
    out->nocow = volume_settings(volume, arena).nocow;
    return NULL;
}

static bool
is_elsewhere(const struct engine *engine, const char *handle)
{
    char home[HANDLE_HOME_SIZE];
    return engine->home[0] && handle_read_home(handle, home) && strcmp(home, engine->home) != 0;
}

/* A volume may have moved here, or away. */
static bool
is_volume_elsewhere(struct engine *engine, const char *handle, struct arena *arena)
{
    struct row row;
    struct error *error AUTO(error_cleanup) = rows_get(engine, &volume_rows, handle, arena, &row);
    if (error)
        return is_elsewhere(engine, handle);
    const volume_record *volume = (const volume_record *)row.record;
    return volume->state == STATE(LEFT) || volume->state == STATE(RECEIVING) ||
           volume->state == STATE(SUPERSEDED);
}

/* Also one of another node that this node has a copy of. */
static struct error *
find_snapshot_source(struct engine *engine, const char *handle, struct arena *arena,
                     struct source *out)
{
    snapshot_record *snapshot;
    bool is_copy = is_elsewhere(engine, handle);
    struct error *error = is_copy ? replica_check_not_deleted(engine, handle) : NULL;
    if (!error)
        error = data_lock_shared(engine, &snapshot_rows, handle, &out->held);
    if (!error)
        error = is_copy ? snapshot_get_any(engine, handle, arena, &snapshot)
                        : snapshot_get(engine, handle, arena, &snapshot);
    if (!error && snapshot->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        error = error_new(CODE_ABORTED, "the snapshot \"%s\" is not ready to use yet; try again",
                          handle);
    if (error)
        return error_wrap(error, "source");
    out->kind = SOURCE_SNAPSHOT;
    out->data = snapshot_data(snapshot);
    out->size_bytes = snapshot->size_bytes;
    out->fs_type = snapshot->fs_type;
    out->formatted_bytes = snapshot->formatted_bytes;
    out->blank = snapshot->blank;
    out->sector_bytes = snapshot->sector_bytes;
    out->nocow = snapshot->nocow;
    return NULL;
}

/* The node that has the source, if it may be another than the handle says; "": it is that one. */
static const char *
find_owner(struct engine *engine, const struct volume_request *request, struct arena *arena)
{
    const struct move_cluster *cluster = atomic_load(&engine->moves);
    struct owner owner;
    struct row row = {0};
    if (!cluster || request->source_kind != SOURCE_VOLUME)
        return "";
    struct error *none AUTO(error_cleanup) =
        rows_get(engine, &volume_rows, request->source_handle, arena, &row);
    const char *key = none ? request->source_handle
                           : move_keys_print(engine, (const volume_record *)row.record, arena);
    struct error *error AUTO(error_cleanup) =
        cluster->owners->read(cluster->owners->context, key, &owner);
    return error || !owner.epoch ? "" : arena_string(arena, owner.node_id);
}

static bool
is_unreachable(const struct error *error)
{
    return error->code == CODE_UNAVAILABLE || error->code == CODE_DEADLINE_EXCEEDED;
}

/* The node that took the snapshot does not answer; another may have a copy. Takes its error. */
static struct error *
open_copy(struct engine *engine, const struct volume_request *request, struct arena *arena,
          struct source *out, struct error *error)
{
    const struct replica_cluster *cluster = atomic_load(&engine->replicas);
    const char *const *ids;
    size_t count = 0;
    struct error *none AUTO(error_cleanup) =
        cluster ? cluster->holders(cluster->context, request->source_handle, arena, &ids, &count)
                : NULL;
    for (size_t i = 0; !none && i < count; i++) {
        struct error *failure AUTO(error_cleanup) = remote_open_source(
            engine, request, ids[i], arena, &out->remote_source, &out->opened_by);
        if (failure)
            continue;
        error_free(error);
        return NULL;
    }
    return error;
}

/* Copies of a volume on another node are copies of a snapshot of it. */
static struct error *
find_remote_source(struct engine *engine, const struct volume_request *request, struct arena *arena,
                   struct source *out)
{
    struct remote_source *found = &out->remote_source;
    struct error *error = remote_open_source(engine, request, find_owner(engine, request, arena),
                                             arena, found, &out->opened_by);
    if (error && request->source_kind == SOURCE_SNAPSHOT && is_unreachable(error))
        error = open_copy(engine, request, arena, out, error);
    if (error)
        return error_wrap(error, "source");
    out->kind = request->source_kind;
    out->data = (struct data){.kind = found->kind, .role = ROLE_SNAPSHOT};
    out->size_bytes = found->size_bytes;
    out->fs_type = found->fs_type;
    out->formatted_bytes = found->formatted_bytes;
    out->blank = found->blank;
    out->sector_bytes = found->sector_bytes;
    out->nocow = found->nocow;
    out->remote = found->snapshot;
    snprintf(out->data.handle, sizeof out->data.handle, "%s", found->snapshot);
    return NULL;
}

/* A snapshot that this node has a complete copy of. `*is_orphan`: its own node has lost it. */
static bool
has_copy(struct engine *engine, const char *handle, struct arena *arena, bool *is_orphan)
{
    snapshot_record *snapshot;
    struct error *error AUTO(error_cleanup) = snapshot_get_any(engine, handle, arena, &snapshot);
    *is_orphan = !error && snapshot->is_orphan;
    return !error && snapshot->state == SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY;
}

/*
 * The node that made a snapshot is asked whether it still exists, even if there is a copy here. If
 * that node cannot be reached, the copy counts.
 */
static struct error *
find_source_elsewhere(struct engine *engine, const struct volume_request *request,
                      struct arena *arena, struct source *out)
{
    bool is_orphan = false;
    bool has_it = request->source_kind == SOURCE_SNAPSHOT &&
                  has_copy(engine, request->source_handle, arena, &is_orphan);
    struct error *error = find_remote_source(engine, request, arena, out);
    bool is_lost = error && (is_unreachable(error) || (is_orphan && error->code == CODE_NOT_FOUND));
    if (!has_it || (error && !is_lost))
        return error;
    if (!error)
        out->opened_by->close(out->opened_by->context, out->remote_source.node_id, out->remote);
    error_free(error);
    *out = (struct source){0};
    return find_snapshot_source(engine, request->source_handle, arena, out);
}

static void
describe_import(const struct volume_import *import, struct source *out)
{
    out->kind = SOURCE_EXPORT;
    out->data = (struct data){.kind = import->kind, .role = ROLE_SNAPSHOT};
    out->size_bytes = import->size_bytes;
    out->fs_type = import->fs_type;
    out->formatted_bytes = import->formatted_bytes;
    out->blank = import->blank;
    out->sector_bytes = import->sector_bytes;
    out->nocow = import->nocow;
}

static struct error *
find_source(struct engine *engine, const struct volume_request *request, struct arena *arena,
            struct source *out)
{
    const char *handle = request->source_handle;
    switch (request->source_kind) {
    case SOURCE_VOLUME:
        return is_volume_elsewhere(engine, handle, arena)
                   ? find_source_elsewhere(engine, request, arena, out)
                   : find_volume_source(engine, handle, arena, out);
    case SOURCE_SNAPSHOT:
        return is_elsewhere(engine, handle) ? find_source_elsewhere(engine, request, arena, out)
                                            : find_snapshot_source(engine, handle, arena, out);
    case SOURCE_EXPORT:
        describe_import(request->import, out);
        return NULL;
    default:
        return NULL;
    }
}

static void
release_source(struct source *source)
{
    name_lock_release(&source->held);
    if (source->remote)
        source->opened_by->close(source->opened_by->context, source->remote_source.node_id,
                                 source->remote);
}

static struct error *
check_source_fits(const struct source *source, const struct volume_spec *spec)
{
    if (source->kind == SOURCE_NONE)
        return NULL;
    if (source->data.kind != spec->kind)
        return error_new(
            CODE_INVALID_ARGUMENT,
            "the source is %s and the volume would be %s: a copy has the kind of its source",
            source->data.kind == KIND_TREE ? "a directory tree" : "a disk image",
            spec->kind == KIND_TREE ? "a directory tree" : "a disk image");
    if (source->fs_type[0] && spec->fs_type[0] && strcmp(source->fs_type, spec->fs_type) != 0)
        return error_new(CODE_INVALID_ARGUMENT, "the source carries %s, not %s", source->fs_type,
                         spec->fs_type);
    uint32_t sector_bytes = source->sector_bytes ? source->sector_bytes : DEFAULT_SECTOR_BYTES;
    if (spec->sector_bytes && spec->sector_bytes != sector_bytes)
        return error_new(
            CODE_INVALID_ARGUMENT,
            "the source has sectors of %u bytes, and its contents may not work with others",
            sector_bytes);
    return NULL;
}

/* ---- the record ---- */

static Csi__V1__VolumeContentSource *
record_source(const struct volume_request *request, struct arena *arena)
{
    Csi__V1__VolumeContentSource *source = arena_alloc(arena, sizeof *source);
    csi__v1__volume_content_source__init(source);
    if (request->source_kind == SOURCE_NONE || request->source_kind == SOURCE_EXPORT)
        return NULL;
    if (request->source_kind == SOURCE_VOLUME) {
        source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
        source->volume = arena_alloc(arena, sizeof *source->volume);
        csi__v1__volume_content_source__volume_source__init(source->volume);
        source->volume->volume_id = (char *)request->source_handle;
    } else {
        source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
        source->snapshot = arena_alloc(arena, sizeof *source->snapshot);
        csi__v1__volume_content_source__snapshot_source__init(source->snapshot);
        source->snapshot->snapshot_id = (char *)request->source_handle;
    }
    return source;
}

static volume_record *
make_record(const struct engine *engine, const struct volume_request *request,
            const struct volume_spec *spec, const struct backend *home, struct arena *arena)
{
    volume_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__volume_record__init(record);
    record->handle = arena_alloc(arena, BACKEND_HANDLE_SIZE);
    handle_make_for(engine, home, record->handle);
    if (request->is_chosen)
        handle_mark_choice(record->handle);
    record->name = (char *)request->name;
    record->kind = spec->kind == KIND_IMAGE ? SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE
                                            : SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE;
    record->size_bytes = spec->size_bytes;
    record->fs_type = (char *)spec->fs_type;
    record->sector_bytes = spec->sector_bytes;
    record->nocow = spec->settings.nocow;
    record->asked_capacity = arena_alloc(arena, sizeof *record->asked_capacity);
    csi__v1__capacity_range__init(record->asked_capacity);
    record->asked_capacity->required_bytes = request->required_bytes;
    record->asked_capacity->limit_bytes = request->limit_bytes;
    record->capabilities = request->capabilities;
    record->n_capabilities = request->capability_count;
    message_map_write(&request->parameters, arena,
                      &skycap__records__volume_record__parameters_entry__descriptor,
                      &record->parameters, &record->n_parameters);
    message_map_write(&request->mutable_parameters, arena,
                      &skycap__records__volume_record__mutable_parameters_entry__descriptor,
                      &record->mutable_parameters, &record->n_mutable_parameters);
    message_map_write(&request->mutable_parameters, arena,
                      &skycap__records__volume_record__asked_mutable_parameters_entry__descriptor,
                      &record->asked_mutable_parameters, &record->n_asked_mutable_parameters);
    record->source = record_source(request, arena);
    record->created_ns = clock_unix_ns();
    record->ephemeral = request->ephemeral;
    return record;
}

/* Copies to the record what the image inherits from its source. */
static void
inherit(volume_record *record, const struct source *source)
{
    record->formatted_bytes = source->formatted_bytes;
    if (source->kind != SOURCE_NONE)
        record->sector_bytes = source->sector_bytes;
    record->blank = (source->kind == SOURCE_NONE || source->blank) && !capability_any_block(record);
}

/* ---- making it ---- */

/*
 * Whether the data is written in place, without checksums, if the request does not say. A new image
 * is: copy on write makes random writes in it several times slower (docs/backends.md). A copy is as
 * its source, because only then can they share data.
 */
static void
choose_nocow(const struct volume_request *request, const struct source *source,
             struct volume_spec *spec)
{
    const char *compression = spec->settings.compression;
    bool is_compressed = compression && strcmp(compression, "none") != 0;
    if (text_map_find(&request->parameters, "nocow") || is_compressed)
        return;
    spec->settings.nocow = source->kind == SOURCE_NONE ? spec->kind == KIND_IMAGE : source->nocow;
}

/* The requested one, else that of the source, where a copy is cheapest. */
static struct error *
choose_backend(const struct engine *engine, const struct volume_request *request,
               const struct source *source, struct backend **out)
{
    const char *name = text_map_find(&request->parameters, "backend");
    if (name)
        return error_wrap(backend_find(engine->backend, name, out), "parameter \"backend\"");
    *out = source->remote || source->kind == SOURCE_EXPORT
               ? engine->backend
               : backend_of(engine->backend, source->data.handle);
    return NULL;
}

static bool
is_made_at_once(const struct engine *engine, const volume_record *record,
                const struct source *source)
{
    struct data data = volume_data(record);
    if (source->remote || source->kind == SOURCE_EXPORT)
        return false;
    return source->kind == SOURCE_NONE ||
           backend_copies_instantly(engine->backend, &source->data, &data);
}

static struct error *
make_data(struct engine *engine, const volume_record *record, const struct volume_spec *spec,
          const struct source *source, struct arena *arena)
{
    struct data data = volume_data(record);
    struct data_settings settings = spec->settings;
    settings.note = rows_note(&record->base, arena);
    struct error *error =
        source->kind == SOURCE_NONE
            ? backend_create(engine->backend, &data, &settings)
            : backend_copy(engine->backend, &source->data, &data, &settings, NULL);
    atomic_store(&engine->has_unsettled, true);
    if (!error)
        error = rows_insert(engine, &volume_rows, &record->base);
    if (error)
        error_free(backend_remove(engine->backend, &data)); /* the next start removes what stays */
    return error;
}

static void
record_remote(volume_record *record, const struct remote_source *source, struct arena *arena)
{
    record->remote_snapshot = (char *)source->snapshot;
    record->remote_node = (char *)source->node_id;
    record->remote_base = (char *)source->base;
    record->remote_source = remote_open_record(source, arena);
}

static void
record_import(volume_record *record, const struct volume_import *import, struct arena *arena)
{
    record->import = arena_alloc(arena, sizeof *record->import);
    skycap__records__import_record__init(record->import);
    record->import->repository = (char *)import->repository;
    record->import->id = (char *)import->id;
    record->import->importing = true;
}

/* The volume is complete when this returns, or its copy has been started and it is COPYING. */
static struct error *
make_volume(struct engine *engine, const struct volume_request *request, struct arena *arena,
            volume_record **out)
{
    struct source source AUTO(release_source) = {0};
    struct volume_spec spec;
    struct backend *home;
    struct error *error = find_source(engine, request, arena, &source);
    if (!error)
        error = spec_make(request, source.size_bytes, &spec);
    if (!error)
        error = check_source_fits(&source, &spec);
    if (!error)
        error = choose_backend(engine, request, &source, &home);
    if (error)
        return error;
    choose_nocow(request, &source, &spec);
    *out = make_record(engine, request, &spec, home, arena);
    inherit(*out, &source);
    if (source.remote)
        record_remote(*out, &source.remote_source, arena);
    if (source.kind == SOURCE_EXPORT)
        record_import(*out, request->import, arena);
    if (is_made_at_once(engine, *out, &source))
        return make_data(engine, *out, &spec, &source, arena);
    error = copy_start(engine, &volume_rows, &(*out)->base, &source.data, &source.held);
    if (!error)
        source.remote = NULL;
    (*out)->state = STATE(COPYING);
    return error;
}

/* A volume that has moved away may have been deleted there: then there is none. */
static struct error *
look_for_moved(struct engine *engine, struct row *existing, struct arena *arena)
{
    bool exists = true;
    volume_record *record = (volume_record *)existing->record;
    struct error *error =
        record->state == STATE(LEFT) ? move_look_for(engine, record, arena, &exists) : NULL;
    if (!exists)
        existing->record = NULL;
    return error;
}

static struct error *
find_or_make(struct engine *engine, const struct volume_request *request, struct arena *arena,
             volume_record **out)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct row existing;
    struct error *error = name_lock_take(&engine->locks, "volume", request->name, &lock);
    if (!error)
        error = rows_find(engine, &volume_rows, request->name, arena, &existing);
    if (!error && existing.record)
        error = look_for_moved(engine, &existing, arena);
    if (error)
        return error;
    return existing.record ? answer_existing((volume_record *)existing.record, request, arena, out)
                           : make_volume(engine, request, arena, out);
}

/* Holds no lock while it waits for a copy: others may ask for the volume or delete it. */
struct error *
volume_create(struct engine *engine, const struct volume_request *request, struct arena *arena,
              volume_record **out)
{
    struct copy_state copy;
    struct error *error = find_or_make(engine, request, arena, out);
    if (error || (*out)->state != STATE(COPYING))
        return error;
    error = copy_wait(engine, (*out)->handle, request->wait_ms, &copy);
    if (error)
        return error;
    if (copy.percent < 100)
        return error_new(CODE_ABORTED, "the volume \"%s\" is still being copied, %u%%; try again",
                         request->name, copy.percent);
    return volume_get(engine, (*out)->handle, arena, out);
}
