/* SPDX-License-Identifier: Apache-2.0 */
/* NodeUnstageVolume of the driver `oim`; the order of its steps is in oim_stage.c. */
#include <string.h>

#include "csi/checks.h"
#include "drivers/oim_internal.h"
#include "node/mount.h"
#include "node/mount_point.h"

#define GONE_TIMEOUT_MS 5000u /* for the kernel to remove the disk of an unmapped volume */

struct error *
oim_unstage_forget(struct oim_driver *oim, struct oim_volume *volume, const mount_record *record)
{
    struct error *error = NULL;
    if (volume->record && oim_volume_is_foreign(volume->record))
        error = rows_delete(&oim->engine, &volume_rows, &volume->record->base);
    return error || !record ? error : mount_rows_delete(&oim->engine, record);
}

struct error *
oim_unstage_unmount(struct oim_driver *oim, const char *handle, const char *path,
                    const mount_record *record, struct arena *arena)
{
    const char *device;
    if (record)
        return capability_is_block(record->capability) ? NULL : mount_remove(path);
    struct error *error AUTO(error_cleanup) = oim_volume_find_device(oim, handle, arena, &device);
    return !error && mount_point_is_mounted_from(device, path) ? mount_remove(path) : NULL;
}

static bool
is_staged_elsewhere(const struct mount_list *uses, const char *path)
{
    for (size_t i = 0; i < uses->count; i++)
        if (!mount_rows_is_publication(uses->records[i]) &&
            strcmp(uses->records[i]->path, path) != 0)
            return true;
    return false;
}

/* A disk that lingers could be mistaken for the next volume with its number. */
static void
await_gone(struct oim_driver *oim, struct call *call, const char *handle)
{
    Skycap__Records__OimMappingRecord *mapping;
    struct error *error AUTO(error_cleanup) =
        oim_volume_get_mapping(oim, handle, call_arena(call), &mapping);
    if (error || !mapping->scsi[0])
        return;
    struct oim_device_query query = oim_volume_query(oim, mapping);
    error = oim_device_wait_gone(&query, GONE_TIMEOUT_MS, call);
    if (error)
        log_warn(oim->engine.log, "a disk is still present after unmapping",
                 LOG_TEXT("connection", oim->base.connection), LOG_TEXT("volume", handle),
                 LOG_TEXT("device", mapping->device), LOG_TEXT("scsi", mapping->scsi));
}

static struct error *
unmap(struct oim_driver *oim, struct call *call, const char *handle)
{
    struct error *error = oim_client_unmap(oim, call, handle);
    if (error)
        return error;
    await_gone(oim, call, handle);
    oim_device_forget_path(oim->directory, handle);
    return oim_volume_save_mapping(oim, handle, NULL, call_arena(call));
}

static struct error *
unstage(struct oim_driver *oim, struct call *call, struct oim_volume *volume, const char *path)
{
    struct arena *arena = call_arena(call);
    struct mount_list uses;
    struct error *error = oim_volume_list_uses(oim, volume->handle, NULL, arena, &uses);
    if (!error)
        error = stage_check_unpublished(&uses, path);
    if (error)
        return error;
    const mount_record *record = mount_rows_find(&uses, path);
    error = oim_unstage_unmount(oim, volume->handle, path, record, arena);
    if (error)
        return error;
    if (is_staged_elsewhere(&uses, path))
        return record ? mount_rows_delete(&oim->engine, record) : NULL;
    error = unmap(oim, call, volume->handle);
    return error ? error : oim_unstage_forget(oim, volume, record);
}

HANDLER(oim_unstage_volume, NodeUnstageVolume)
{
    (void)reply;
    struct oim_driver *oim = oim_of(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    struct error *error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_path("staging_target_path", request->staging_target_path);
    if (error)
        return error;
    const char *handle = oim_volume_handle_of_id(oim, request->volume_id, call_arena(call));
    if (!handle)
        return NULL;
    error = oim_volume_take(oim, handle, call_arena(call), &volume);
    return error ? error : unstage(oim, call, &volume, request->staging_target_path);
}
