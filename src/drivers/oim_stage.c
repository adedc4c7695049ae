/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NodeStageVolume of the driver `oim`: map, find the device, format, mount. The steps of staging
 * and unstaging (oim_unstage.c) are
 *
 *     row of the use | MapVolume | row of the mapping | device | mkfs | row says formatted | mount
 *     unmount | UnmapVolume | device gone | row of the mapping goes | row of the use goes
 *
 * The process may die at each |: both requests start by finding out what exists, and continue.
 */
#include <string.h>

#include "backends/format.h"
#include "csi/checks.h"
#include "drivers/oim_internal.h"
#include "message/message_map.h"
#include "node/image_fs.h"
#include "node/mount.h"
#include "node/mount_point.h"

/* One NodeStageVolume. */
struct staging {
    struct oim_driver *oim;
    struct call *call;
    const Csi__V1__NodeStageVolumeRequest *request;
    struct oim_volume *volume;
    struct use use;
    bool is_known; /* the row of the use existed before */
};

/* ---- volumes of somebody else ---- */

static const char *
asked_file_system(const volume_capability *capability)
{
    return capability_is_block(capability) ? "" : capability->mount->fs_type;
}

static struct error *
refuse_unknown(const struct staging *staging)
{
    return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", staging->request->volume_id);
}

/* Provisioned by hand or by another driver: it has a row only while it is staged. */
static struct error *
adopt(struct staging *staging)
{
    struct oim_driver *oim = staging->oim;
    struct oim_volume *volume = staging->volume;
    const char *fs_type = asked_file_system(staging->use.capability);
    bool exists = true;
    struct error *error = oim->options.emulation
                              ? NULL
                              : oim_client_check(oim, staging->call, volume->handle, &exists);
    if (!error && !exists)
        error = refuse_unknown(staging);
    if (!error && fs_type[0] && !format_is_known(fs_type))
        error = error_new(CODE_INVALID_ARGUMENT, "fs_type \"%s\": use ext4, xfs or btrfs", fs_type);
    if (error)
        return error;
    volume->record = oim_volume_new(volume->handle, call_arena(staging->call));
    if (!capability_is_block(staging->use.capability))
        volume->record->fs_type = (char *)(fs_type[0] ? fs_type : "ext4");
    return NULL;
}

static struct error *
find_volume(struct staging *staging)
{
    const volume_record *record = staging->volume->record;
    if (!record)
        return adopt(staging);
    bool is_made = record->state == SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY;
    return is_made ? NULL : refuse_unknown(staging);
}

/* ---- mapping ---- */

static struct error *
make_request(struct staging *staging, Oim__V0__MapVolumeRequest *out)
{
    const struct oim_options *options = &staging->oim->options;
    const Csi__V1__NodeStageVolumeRequest *request = staging->request;
    struct arena *arena = call_arena(staging->call);
    oim__v0__map_volume_request__init(out);
    out->volume_id = (char *)staging->volume->handle;
    if (!options->emulation) {
        out->params_case = OIM__V0__MAP_VOLUME_REQUEST__PARAMS_MALLOC;
        out->malloc = arena_alloc(arena, sizeof *out->malloc);
        oim__v0__malloc_params__init(out->malloc);
        return NULL;
    }
    struct oim_emulated_volume emulated = {
        .id = request->volume_id,
        .staging_path = request->staging_target_path,
        .context = message_map_read(request->volume_context, request->n_volume_context, arena),
        .secrets = message_map_read(request->secrets, request->n_secrets, arena),
        .clusters = &options->clusters,
    };
    struct error *error = options->emulation->set_parameters(&emulated, arena, out);
    return error;
}

static uint64_t
device_timeout_ms(const struct staging *staging)
{
    uint64_t wait_ms = controller_wait_ms(staging->call);
    return wait_ms < staging->oim->timeout_ms ? wait_ms : staging->oim->timeout_ms;
}

static struct error *
await_device(struct staging *staging, const Skycap__Records__OimMappingRecord *mapping,
             const char **path)
{
    struct oim_driver *oim = staging->oim;
    struct oim_device device;
    struct oim_device_query query = oim_volume_query(oim, mapping);
    struct error *error =
        oim_device_wait(&query, device_timeout_ms(staging), staging->call, &device);
    if (!error)
        error = oim_device_path(&device, oim->directory, staging->volume->handle,
                                call_arena(staging->call), path);
    return error ? error : oim_device_wait_open(*path, device_timeout_ms(staging), staging->call);
}

/* ---- the file system ---- */

/* A volume of somebody else may have a file system that the request does not name. */
static struct error *
find_file_system(struct staging *staging, const char *device)
{
    volume_record *record = staging->volume->record;
    char found[FORMAT_NAME_SIZE];
    if (!oim_volume_is_foreign(record) || asked_file_system(staging->use.capability)[0])
        return NULL;
    struct error *error = format_probe(device, found, sizeof found);
    if (!error && format_is_known(found))
        record->fs_type = arena_string(call_arena(staging->call), found);
    return error;
}

static struct error *
ensure_file_system(struct staging *staging, const char *device)
{
    volume_record *record = staging->volume->record;
    if (record->formatted_bytes)
        return NULL;
    struct error *error = find_file_system(staging, device);
    if (!error)
        error = image_fs_make(record, device, call_arena(staging->call));
    if (error)
        return error;
    record->formatted_bytes = record->size_bytes ? record->size_bytes : 1;
    return oim_volume_save(staging->oim, staging->volume);
}

static bool
is_mounted(const struct use *use, const char *device)
{
    return mount_point_is_mounted_from(device, use->path) &&
           mount_point_is_read_only(use->path) == use->read_only;
}

static struct error *
mount_file_system(struct staging *staging, const char *device)
{
    const struct use *use = &staging->use;
    struct arena *arena = call_arena(staging->call);
    if (is_mounted(use, device))
        return use_apply_group(use);
    struct error *error = ensure_file_system(staging, device);
    if (!error)
        error = mount_point_clear(use->path, staging->is_known);
    if (!error)
        error = mount_point_make_directory(use->path);
    if (!error)
        error = image_fs_mount(staging->volume->record, device, use->path,
                               capability_mount_flags(use->capability, arena), use->read_only);
    return error ? error : use_apply_group(use);
}

/* From now on the device may hold a user's data, whatever it looks like. */
static struct error *
stage_raw(struct staging *staging)
{
    volume_record *record = staging->volume->record;
    if (!record->blank)
        return NULL;
    record->blank = false;
    return oim_volume_save(staging->oim, staging->volume);
}

/* ---- staging ---- */

static struct error *
mount_mapped(struct staging *staging, const Skycap__Records__OimMappingRecord *mapping)
{
    const char *device;
    struct error *error = oim_volume_save_mapping(staging->oim, staging->volume->handle, mapping,
                                                  call_arena(staging->call));
    if (!error)
        error = await_device(staging, mapping, &device);
    if (error)
        return error;
    return capability_is_block(staging->use.capability) ? stage_raw(staging)
                                                        : mount_file_system(staging, device);
}

/* Takes and returns the error. What cannot be undone now stays in the rows, for unstaging. */
static struct error *
give_up(struct staging *staging, const mount_record *record, bool is_mapped, struct error *error)
{
    struct oim_driver *oim = staging->oim;
    struct oim_volume *volume = staging->volume;
    struct arena *arena = call_arena(staging->call);
    struct mount_list uses;
    struct error *failed AUTO(error_cleanup) =
        mount_rows_list(&oim->engine, volume->handle, arena, &uses);
    if (failed || staging->is_known || (!is_mapped && oim_client_is_doubtful(error)))
        return error;
    if (is_mapped)
        failed = oim_unstage_unmount(oim, volume->handle, staging->use.path, NULL, arena);
    if (!failed && uses.count > 1) {
        error_free(mount_rows_delete(&oim->engine, record));
        return error;
    }
    if (!failed && is_mapped)
        failed = oim_client_unmap(oim, NULL, volume->handle);
    if (!failed)
        failed = oim_volume_save_mapping(oim, volume->handle, NULL, arena);
    if (!failed)
        error_free(oim_unstage_forget(oim, volume, record));
    return error;
}

static struct error *
map_and_mount(struct staging *staging, const mount_record *record)
{
    Oim__V0__MapVolumeRequest request;
    Skycap__Records__OimMappingRecord mapping;
    struct error *error = make_request(staging, &request);
    if (!error)
        error = oim_client_map(staging->oim, staging->call, &request, call_arena(staging->call),
                               &mapping);
    if (error)
        return give_up(staging, record, false, error);
    error = mount_mapped(staging, &mapping);
    return error ? give_up(staging, record, true, error) : NULL;
}

/* A repeated request needs no controller. */
static bool
is_staged(struct staging *staging)
{
    const char *device;
    if (!staging->is_known || capability_is_block(staging->use.capability))
        return false;
    struct error *error AUTO(error_cleanup) = oim_volume_find_device(
        staging->oim, staging->volume->handle, call_arena(staging->call), &device);
    return !error && is_mounted(&staging->use, device);
}

static struct error *
stage(struct staging *staging)
{
    struct oim_driver *oim = staging->oim;
    struct oim_volume *volume = staging->volume;
    struct arena *arena = call_arena(staging->call);
    const struct use *use = &staging->use;
    struct mount_list rows;
    mount_record *record;
    bool is_new;
    struct error *error = find_volume(staging);
    if (!error)
        error = use_check_capability(volume->record, use->capability);
    if (!error)
        error = oim_volume_forget_lost(oim, volume->handle, use, arena, &rows);
    if (!error)
        error = use_check_access_type(&rows, use);
    if (!error)
        error = use_record(&oim->engine, volume->handle, &rows, use, arena, &record, &is_new);
    if (!error && volume->revision == STORE_ABSENT)
        error = oim_volume_save(oim, volume);
    if (error)
        return error;
    staging->is_known = !is_new;
    return is_staged(staging) ? use_apply_group(use) : map_and_mount(staging, record);
}

HANDLER(oim_stage_volume, NodeStageVolume)
{
    (void)reply;
    struct oim_driver *oim = oim_of(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    struct error *error = checks_stage(request);
    if (!error)
        error = oim_volume_check_mode(request->volume_capability);
    if (error)
        return error;
    const char *handle = oim_volume_handle_of_id(oim, request->volume_id, call_arena(call));
    if (!handle)
        return error_new(CODE_NOT_FOUND, "there is no volume \"%s\" on this node",
                         request->volume_id);
    error = oim_volume_take(oim, handle, call_arena(call), &volume);
    if (error)
        return error;
    struct staging staging = {
        .oim = oim,
        .call = call,
        .request = request,
        .volume = &volume,
        .use = {request->staging_target_path, "", request->volume_capability,
                capability_is_read_only(request->volume_capability)},
    };
    return stage(&staging);
}
