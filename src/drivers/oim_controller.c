/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi.v1.Controller of the driver `oim`: a volume is a malloc bdev of the node's controller.
 *
 * What if the process dies in CreateVolume: the row is there, marked as being made (COPYING), and
 * the bdev maybe. The same request goes on from there. In DeleteVolume the row goes last: what is
 * left of a crash is a row without a bdev, which the repeated request deletes.
 */
#include <string.h>

#include "backends/format.h"
#include "base/clock.h"
#include "csi/checks.h"
#include "csi/messages.h"
#include "csi/topology.h"
#include "drivers/oim_internal.h"
#include "message/message_map.h"
#include "node/mount.h"
#include "volumes/spec.h"

#define DEFAULT_BYTES (INT64_C(1) << 20)
#define SECTOR_BYTES 512
#define TOKEN_PREFIX "after/"

#define MAKING SKYCAP__RECORDS__VOLUME_RECORD__STATE__COPYING
#define READY SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY

/* ---- what is asked for ---- */

static bool
wants_block(const Csi__V1__CreateVolumeRequest *request)
{
    for (size_t i = 0; i < request->n_volume_capabilities; i++)
        if (capability_is_block(request->volume_capabilities[i]))
            return true;
    return false;
}

/* "": the volume is a raw device only. */
static struct error *
choose_file_system(const Csi__V1__CreateVolumeRequest *request, const char **out)
{
    bool is_mounted = false;
    *out = "";
    for (size_t i = 0; i < request->n_volume_capabilities; i++) {
        const volume_capability *capability = request->volume_capabilities[i];
        if (capability_is_block(capability))
            continue;
        const char *wanted = capability->mount->fs_type;
        is_mounted = true;
        if (wanted[0] && !format_is_known(wanted))
            return error_new(CODE_INVALID_ARGUMENT, "fs_type \"%s\": use ext4, xfs or btrfs",
                             wanted);
        if (wanted[0] && (*out)[0] && strcmp(*out, wanted) != 0)
            return error_new(CODE_INVALID_ARGUMENT, "one volume cannot be both %s and %s", *out,
                             wanted);
        if (wanted[0])
            *out = wanted;
    }
    if (is_mounted && !(*out)[0])
        *out = "ext4";
    return NULL;
}

static struct error *
choose_size(const Csi__V1__CapacityRange *range, const char *fs_type, int64_t *out)
{
    int64_t required = range ? range->required_bytes : 0, limit = range ? range->limit_bytes : 0;
    int64_t least = fs_type[0] ? (int64_t)format_smallest_bytes(fs_type) : SECTOR_BYTES;
    int64_t size = required ? required : DEFAULT_BYTES;
    if (!required && limit && size > limit)
        size = limit / SECTOR_BYTES * SECTOR_BYTES;
    if (size < least)
        size = least;
    if (size > SPEC_LARGEST_BYTES)
        return error_new(CODE_OUT_OF_RANGE, "%jd bytes are more than a volume can have (%jd)",
                         (intmax_t)size, (intmax_t)SPEC_LARGEST_BYTES);
    size = (size + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    if (limit && size > limit)
        return error_new(CODE_OUT_OF_RANGE, "%jd bytes are needed, and the limit is %jd",
                         (intmax_t)size, (intmax_t)limit);
    *out = size;
    return NULL;
}

/* The first key that asks for something; NULL: there is none. */
static const char *
find_parameter(void *entries, size_t count, struct arena *arena)
{
    struct text_map map = message_map_read(entries, count, arena);
    for (size_t i = 0; i < map.count; i++)
        if (!spec_is_sidecar_key(map.pairs[i].key))
            return map.pairs[i].key;
    return NULL;
}

static struct error *
check_parameters(const Csi__V1__CreateVolumeRequest *request, struct arena *arena)
{
    const char *key = find_parameter(request->parameters, request->n_parameters, arena);
    if (key)
        return error_new(CODE_INVALID_ARGUMENT, "unknown parameter \"%s\": there are none here",
                         key);
    if (find_parameter(request->mutable_parameters, request->n_mutable_parameters, arena))
        return error_new(CODE_INVALID_ARGUMENT, "there are no mutable parameters here");
    if (request->volume_content_source)
        return error_new(CODE_INVALID_ARGUMENT, "a volume cannot be made from another here");
    return NULL;
}

static struct error *
check_create(struct oim_driver *oim, const Csi__V1__CreateVolumeRequest *request,
             struct arena *arena)
{
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_name("name", request->name);
    if (!error)
        error = checks_capabilities(request->volume_capabilities, request->n_volume_capabilities);
    if (!error)
        error = checks_capacity(request->capacity_range);
    if (!error)
        error = check_parameters(request, arena);
    for (size_t i = 0; i < request->n_volume_capabilities && !error; i++)
        error = oim_volume_check_mode(request->volume_capabilities[i]);
    return error ? error : topology_check(&oim->engine, request->accessibility_requirements, arena);
}

/* ---- answers ---- */

static Csi__V1__Volume *
volume_message(const struct oim_driver *oim, const volume_record *record, struct arena *arena)
{
    Csi__V1__Volume *volume = arena_alloc(arena, sizeof *volume);
    csi__v1__volume__init(volume);
    volume->volume_id = arena_string(arena, record->handle);
    volume->capacity_bytes = record->size_bytes;
    volume->accessible_topology = arena_alloc(arena, sizeof(void *));
    volume->accessible_topology[0] = messages_topology(oim->engine.node_id, arena);
    volume->n_accessible_topology = 1;
    return volume;
}

/* ---- create ---- */

/* The record that is there may be another's: names that have the same hash are not the same. */
static struct error *
check_same(const volume_record *record, const Csi__V1__CreateVolumeRequest *request,
           const char *fs_type)
{
    const Csi__V1__CapacityRange *range = request->capacity_range;
    bool has_size = !range || (record->size_bytes >= range->required_bytes &&
                               (!range->limit_bytes || record->size_bytes <= range->limit_bytes));
    bool is_usable = strcmp(record->fs_type, fs_type) == 0 || (!fs_type[0] && wants_block(request));
    if (strcmp(record->name, request->name) == 0 && has_size && is_usable)
        return NULL;
    return error_new(CODE_ALREADY_EXISTS,
                     "there is a volume of that name already, with another size or file system");
}

/* Only what was certainly not there before can have nothing in it: see `blank` in records.proto. */
static struct error *
remember(struct oim_driver *oim, struct oim_volume *volume, bool bdev_exists, bool is_raw)
{
    volume->record->state = MAKING;
    volume->record->formatted_bytes = 0;
    volume->record->blank = !bdev_exists && !is_raw;
    volume->record->created_ns = clock_unix_ns();
    return oim_volume_save(oim, volume);
}

static struct error *
provision(struct oim_driver *oim, struct call *call, struct oim_volume *volume, bool is_new)
{
    struct error *error =
        oim_client_provision(oim, call, volume->handle, volume->record->size_bytes);
    if (!error) {
        volume->record->state = READY;
        return oim_volume_save(oim, volume);
    }
    /* Nobody may conclude that it is not there, and have it made elsewhere. */
    error->in_doubt |= oim_client_is_doubtful(error);
    if (is_new && !error->in_doubt)
        error_free(rows_delete(&oim->engine, &volume_rows, &volume->record->base));
    return error;
}

static volume_record *
new_record(const char *handle, const Csi__V1__CreateVolumeRequest *request, const char *fs_type,
           int64_t size, struct arena *arena)
{
    volume_record *record = oim_volume_new(handle, arena);
    record->name = request->name;
    record->size_bytes = size;
    record->fs_type = (char *)fs_type;
    return record;
}

/*
 * A bdev that is gone, as after a reboot of the controller, is made anew: it is what the request
 * asks for.
 */
static struct error *
create_held(struct oim_driver *oim, struct call *call, const Csi__V1__CreateVolumeRequest *request,
            struct oim_volume *volume)
{
    struct arena *arena = call_arena(call);
    const char *fs_type;
    int64_t size;
    bool exists, is_new = !volume->record || oim_volume_is_foreign(volume->record);
    struct error *error = choose_file_system(request, &fs_type);
    if (!error)
        error = choose_size(request->capacity_range, fs_type, &size);
    if (!error && !is_new)
        error = check_same(volume->record, request, fs_type);
    if (!error)
        error = oim_client_check(oim, call, volume->handle, &exists);
    if (error || (!is_new && exists && volume->record->state == READY))
        return error;
    if (is_new)
        volume->record = new_record(volume->handle, request, fs_type, size, arena);
    if (is_new || !exists)
        error = remember(oim, volume, exists, wants_block(request));
    return error ? error : provision(oim, call, volume, is_new);
}

static HANDLER(create_volume, CreateVolume)
{
    struct oim_driver *oim = oim_of(call);
    struct arena *arena = call_arena(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    struct error *error = check_create(oim, request, arena);
    if (!error)
        error = oim_volume_take(oim, oim_volume_handle(request->name, arena), arena, &volume);
    if (!error)
        error = create_held(oim, call, request, &volume);
    if (!error)
        reply->volume = volume_message(oim, volume.record, arena);
    return error;
}

/* ---- delete ---- */

static struct error *
check_unused(struct oim_driver *oim, const char *handle, struct arena *arena)
{
    struct mount_list uses;
    struct error *error = oim_volume_list_uses(oim, handle, NULL, arena, &uses);
    for (size_t i = 0; i < uses.count && !error; i++)
        if (capability_is_block(uses.records[i]->capability) ||
            mount_is_point(uses.records[i]->path))
            error = error_new(CODE_FAILED_PRECONDITION, "the volume is in use at %s",
                              uses.records[i]->path);
    return error;
}

static struct error *
forget(struct oim_driver *oim, struct oim_volume *volume, struct arena *arena)
{
    struct mount_list rows;
    struct error *error = mount_rows_list(&oim->engine, volume->handle, arena, &rows);
    for (size_t i = 0; i < rows.count && !error; i++)
        error = mount_rows_delete(&oim->engine, rows.records[i]);
    if (!error)
        error = oim_volume_save_mapping(oim, volume->handle, NULL, arena);
    if (!error && volume->record)
        error = rows_delete(&oim->engine, &volume_rows, &volume->record->base);
    return error;
}

/*
 * Of a volume without a row the bdev is deleted too: it may have been made before the store was
 * lost.
 */
static HANDLER(delete_volume, DeleteVolume)
{
    (void)reply;
    struct oim_driver *oim = oim_of(call);
    struct arena *arena = call_arena(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (error || !oim_volume_is_handle(request->volume_id))
        return error;
    error = oim_volume_take(oim, request->volume_id, arena, &volume);
    if (!error)
        error = check_unused(oim, volume.handle, arena);
    if (!error)
        error = oim_client_provision(oim, call, volume.handle, 0);
    return error ? error : forget(oim, &volume, arena);
}

/* ---- asking ---- */

static struct error *
refuse_unknown(const char *id)
{
    return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", id);
}

static bool
is_made(const volume_record *record)
{
    return record->state == READY && !oim_volume_is_foreign(record);
}

static struct error *
get_row(struct oim_driver *oim, const char *id, struct arena *arena, volume_record **out)
{
    struct row row;
    struct error *error = checks_id("volume_id", id);
    if (!error && !oim_volume_is_handle(id))
        error = refuse_unknown(id);
    if (!error)
        error = rows_get(&oim->engine, &volume_rows, id, arena, &row);
    if (error)
        return error;
    *out = (volume_record *)row.record;
    return is_made(*out) ? NULL : refuse_unknown(id);
}

/* What of the request is not so; NULL: all of it is. */
static const char *
find_obstacle(const volume_record *volume,
              const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct arena *arena)
{
    for (size_t i = 0; i < request->n_volume_capabilities; i++) {
        struct error *obstacle AUTO(error_cleanup) =
            oim_volume_check_mode(request->volume_capabilities[i]);
        if (!obstacle)
            obstacle = use_check_capability(volume, request->volume_capabilities[i]);
        if (obstacle)
            return arena_string(arena, obstacle->message);
    }
    if (find_parameter(request->parameters, request->n_parameters, arena) ||
        find_parameter(request->mutable_parameters, request->n_mutable_parameters, arena))
        return "the volume has no parameters";
    return request->n_volume_context ? "the volume has no volume_context" : NULL;
}

static HANDLER(validate_capabilities, ValidateVolumeCapabilities)
{
    struct oim_driver *oim = oim_of(call);
    struct arena *arena = call_arena(call);
    volume_record *volume;
    bool exists = true;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_capabilities(request->volume_capabilities, request->n_volume_capabilities);
    if (!error)
        error = get_row(oim, request->volume_id, arena, &volume);
    if (!error)
        error = oim_client_check(oim, call, request->volume_id, &exists);
    if (!error && !exists)
        error = error_new(CODE_NOT_FOUND, "the controller has lost the volume \"%s\"",
                          request->volume_id);
    if (error)
        return error;
    messages_confirm(request, find_obstacle(volume, request, arena), arena, reply);
    return NULL;
}

static Csi__V1__ListVolumesResponse__Entry *
list_entry(const struct oim_driver *oim, const volume_record *record, struct arena *arena)
{
    Csi__V1__ListVolumesResponse__Entry *entry = arena_alloc(arena, sizeof *entry);
    csi__v1__list_volumes_response__entry__init(entry);
    entry->volume = volume_message(oim, record, arena);
    return entry;
}

static void
add_page(const struct oim_driver *oim, const struct row_page *page, size_t most,
         struct arena *arena, Csi__V1__ListVolumesResponse *reply)
{
    reply->entries = arena_alloc(arena, page->count * sizeof(void *));
    for (size_t i = 0; i < page->count; i++) {
        const volume_record *record = (const volume_record *)page->rows[i].record;
        if (!is_made(record))
            continue;
        if (most && reply->n_entries == most) {
            reply->next_token = arena_print(
                arena, TOKEN_PREFIX "%s", reply->entries[reply->n_entries - 1]->volume->volume_id);
            return;
        }
        reply->entries[reply->n_entries++] = list_entry(oim, record, arena);
    }
}

/* A token has the handle of the last volume that was told. */
static HANDLER(list_volumes, ListVolumes)
{
    struct oim_driver *oim = oim_of(call);
    struct row_page page;
    const char *after = NULL;
    if (request->max_entries < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_entries is negative");
    if (request->starting_token[0]) {
        after = request->starting_token + sizeof TOKEN_PREFIX - 1;
        if (strncmp(request->starting_token, TOKEN_PREFIX, sizeof TOKEN_PREFIX - 1) != 0 ||
            !oim_volume_is_handle(after))
            return error_new(CODE_ABORTED, "starting_token is not one of ours: list anew");
    }
    struct error *error = rows_list(&oim->engine, &volume_rows, after, 0, call_arena(call), &page);
    if (!error)
        add_page(oim, &page, (size_t)request->max_entries, call_arena(call), reply);
    return error;
}

static HANDLER(get_volume, ControllerGetVolume)
{
    struct oim_driver *oim = oim_of(call);
    struct arena *arena = call_arena(call);
    volume_record *volume;
    struct error *error = get_row(oim, request->volume_id, arena, &volume);
    if (error)
        return error;
    reply->volume = volume_message(oim, volume, arena);
    reply->status = arena_alloc(arena, sizeof *reply->status);
    csi__v1__controller_get_volume_response__volume_status__init(reply->status);
    return NULL;
}

const struct csi_v1_controller oim_controller_handlers = {
    .create_volume = {create_volume},
    .delete_volume = {delete_volume},
    .validate_volume_capabilities = {validate_capabilities},
    .list_volumes = {list_volumes},
    .controller_get_volume = {get_volume},
};
