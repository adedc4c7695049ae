/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Node of the driver `oim`: publishing, and usage. Staging has its own files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/loop.h"
#include "base/files.h"
#include "csi/checks.h"
#include "csi/messages.h"
#include "drivers/oim_internal.h"
#include "node/mount.h"
#include "node/mount_point.h"
#include "node/publish.h"

/* ---- publishing ---- */

static struct error *
check_staged(const char *device, const struct mount_list *uses, const struct use *use)
{
    const mount_record *staging;
    struct error *error = publish_check_staging(uses, use, &staging);
    if (error)
        return error;
    if (device && (capability_is_block(use->capability) ||
                   mount_point_is_mounted_from(device, staging->path)))
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "the volume's staging at %s is gone: call NodeStageVolume again",
                     staging->path);
}

/* A bind mount cannot make a device read-only, so readers get a read-only loop device. */
static struct error *
bind_block(const char *device, const struct use *use, bool is_known)
{
    struct loop_device reader AUTO(loop_release) = LOOP_NONE;
    struct error *error = use->read_only ? loop_attach(device, LOOP_READ_ONLY, &reader) : NULL;
    return error ? error
                 : mount_point_bind_device(use->read_only ? reader.path : device, use->path,
                                           is_known);
}

static struct error *
bind_target(struct oim_driver *oim, const char *handle, const char *device,
            const struct mount_list *uses, const struct use *use, struct arena *arena)
{
    mount_record *record;
    bool is_new;
    struct error *error = use_record(&oim->engine, handle, uses, use, arena, &record, &is_new);
    if (error)
        return error;
    error = capability_is_block(use->capability) ? bind_block(device, use, !is_new)
                                                 : publish_bind_staged(use, !is_new, arena);
    if (error && is_new)
        error_free(
            mount_rows_delete(&oim->engine, record)); /* a repeated request repairs the rest */
    return error;
}

/* NULL: it cannot be found. */
static const char *
find_device(struct oim_driver *oim, const char *handle, struct arena *arena)
{
    const char *device;
    struct error *error AUTO(error_cleanup) = oim_volume_find_device(oim, handle, arena, &device);
    return error ? NULL : device;
}

static struct error *
publish(struct oim_driver *oim, const struct oim_volume *volume, const struct use *use,
        struct arena *arena)
{
    struct mount_list uses;
    const char *device = find_device(oim, volume->handle, arena);
    struct error *error = use_check_capability(volume->record, use->capability);
    if (!error)
        error = oim_volume_forget_lost(oim, volume->handle, use, arena, &uses);
    if (!error)
        error = oim_volume_list_uses(oim, volume->handle, use->path, arena, &uses);
    if (!error)
        error = use_check_same(&uses, use);
    if (!error)
        error = check_staged(device, &uses, use);
    if (!error)
        error = publish_check_others(&uses, use);
    return error ? error : bind_target(oim, volume->handle, device, &uses, use, arena);
}

/* NOT_FOUND: the volume has no record. */
static struct error *
take_known(struct oim_driver *oim, const char *id, struct arena *arena, struct oim_volume *out)
{
    const char *handle = oim_volume_handle_of_id(oim, id, arena);
    struct error *error = handle ? oim_volume_take(oim, handle, arena, out) : NULL;
    if (!error && (!handle || !out->record))
        error = error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", id);
    return error;
}

static HANDLER(node_publish, NodePublishVolume)
{
    (void)reply;
    struct oim_driver *oim = oim_of(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    struct error *error = checks_publish(request);
    if (!error)
        error = oim_volume_check_mode(request->volume_capability);
    if (!error)
        error = take_known(oim, request->volume_id, call_arena(call), &volume);
    if (error)
        return error;
    struct use use = {request->target_path, request->staging_target_path,
                      request->volume_capability,
                      request->readonly || capability_is_read_only(request->volume_capability)};
    return publish(oim, &volume, &use, call_arena(call));
}

/* ---- unpublishing ---- */

static bool
shows(const char *device, const char *path)
{
    return mount_point_is_mounted_from(device, path) || mount_point_is_device_at(device, path);
}

/* A mount without a row is ours if it is of this volume. */
static struct error *
check_unknown(const char *device, const char *path)
{
    if (!mount_is_point(path) || (device && shows(device, path)))
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "what is mounted at %s was not published by this connection: unmount it by "
                     "hand",
                     path);
}

static struct error *
unpublish(struct oim_driver *oim, const char *handle, const char *path, struct arena *arena)
{
    struct mount_list uses;
    const char *device = find_device(oim, handle, arena);
    struct error *error = oim_volume_list_uses(oim, handle, path, arena, &uses);
    if (error)
        return error;
    const mount_record *record = mount_rows_find(&uses, path);
    if (!record)
        error = check_unknown(device, path);
    if (!error)
        error = mount_point_remove(path);
    if (!error && record && device && publish_is_last_reader(&uses, record))
        error = loop_detach(device);
    return error || !record ? error : mount_rows_delete(&oim->engine, record);
}

static HANDLER(node_unpublish, NodeUnpublishVolume)
{
    (void)reply;
    struct oim_driver *oim = oim_of(call);
    struct arena *arena = call_arena(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    struct error *error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_path("target_path", request->target_path);
    if (error)
        return error;
    const char *handle = oim_volume_handle_of_id(oim, request->volume_id, arena);
    if (!handle)
        return NULL;
    error = oim_volume_take(oim, handle, arena, &volume);
    return error ? error : unpublish(oim, handle, request->target_path, arena);
}

/* ---- usage ---- */

/* A volume of somebody else has no size in its row. */
static struct error *
measure_device(const char *path, int64_t *out)
{
    int fd AUTO(files_close) = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (size < 0)
        return error_from_errno(errno, "ask for the size of %s", path);
    *out = size;
    return NULL;
}

static struct error *
measure(struct oim_driver *oim, const struct oim_volume *volume, const char *path,
        struct arena *arena, struct volume_usage *out)
{
    struct mount_list uses;
    struct error *error = mount_rows_list(&oim->engine, volume->handle, arena, &uses);
    if (error)
        return error;
    const mount_record *use = mount_rows_find_same(&uses, path);
    if (!use)
        return error_new(CODE_NOT_FOUND, "the volume is not at %s", path);
    error = usage_measure(&oim->engine, volume->record, path, out);
    if (!error && out->is_block && mount_rows_is_publication(use))
        error = measure_device(path, &out->bytes.total);
    return error;
}

static HANDLER(node_get_stats, NodeGetVolumeStats)
{
    struct oim_driver *oim = oim_of(call);
    struct arena *arena = call_arena(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    struct volume_usage usage;
    struct error *error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_present("volume_path", request->volume_path);
    if (!error)
        error = take_known(oim, request->volume_id, arena, &volume);
    if (!error)
        error = measure(oim, &volume, request->volume_path, arena, &usage);
    if (!error)
        messages_add_usage(&usage, arena, reply);
    return error;
}

const struct csi_v1_node oim_node_handlers = {
    .node_stage_volume = {oim_stage_volume},
    .node_unstage_volume = {oim_unstage_volume},
    .node_publish_volume = {node_publish},
    .node_unpublish_volume = {node_unpublish},
    .node_get_volume_stats = {node_get_stats},
};
