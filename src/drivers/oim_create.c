/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CreateVolume of the driver `oim`.
 *
 * If the process dies in CreateVolume, the row is there, marked as being made (COPYING), and maybe
 * the bdev. The same request continues from there.
 */
#include <string.h>

#include "backends/format.h"
#include "base/clock.h"
#include "csi/checks.h"
#include "csi/topology.h"
#include "drivers/oim_internal.h"
#include "volumes/spec.h"

#define DEFAULT_BYTES (INT64_C(1) << 20)
#define SECTOR_BYTES 512

#define MAKING SKYCAP__RECORDS__VOLUME_RECORD__STATE__COPYING
#define READY SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY

/* ---- the request ---- */

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
        return error_new(CODE_OUT_OF_RANGE, "%jd bytes exceed the largest size of a volume (%jd)",
                         (intmax_t)size, (intmax_t)SPEC_LARGEST_BYTES);
    size = (size + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    if (limit && size > limit)
        return error_new(CODE_OUT_OF_RANGE, "%jd bytes are needed, and the limit is %jd",
                         (intmax_t)size, (intmax_t)limit);
    *out = size;
    return NULL;
}

static struct error *
check_parameters(const Csi__V1__CreateVolumeRequest *request, struct arena *arena)
{
    const char *key = oim_volume_find_parameter(request->parameters, request->n_parameters, arena);
    if (key)
        return error_new(CODE_INVALID_ARGUMENT, "unknown parameter \"%s\": this driver has none",
                         key);
    if (oim_volume_find_parameter(request->mutable_parameters, request->n_mutable_parameters,
                                  arena))
        return error_new(CODE_INVALID_ARGUMENT, "this driver has no mutable parameters");
    if (request->volume_content_source)
        return error_new(CODE_INVALID_ARGUMENT, "this driver cannot copy volumes");
    return NULL;
}

static struct error *
check_create(struct oim_driver *oim, const Csi__V1__CreateVolumeRequest *request,
             struct arena *arena)
{
    struct error *error = checks_create(request);
    if (!error)
        error = check_parameters(request, arena);
    for (size_t i = 0; i < request->n_volume_capabilities && !error; i++)
        error = oim_volume_check_mode(request->volume_capabilities[i]);
    return error ? error : topology_check(&oim->engine, request->accessibility_requirements, arena);
}

/* ---- create ---- */

/* Also compares the names: two names may have the same hash. */
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

/* Only a bdev that certainly did not exist is blank: see `blank` in records.proto. */
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
    /* The caller must not conclude that the volume does not exist and create it elsewhere. */
    error->in_doubt |= oim_client_is_doubtful(error);
    if (is_new && !error->in_doubt)
        error_free(rows_delete(&oim->engine, &volume_rows, &volume->record->base));
    return error;
}

static volume_record *
new_record(const struct oim_driver *oim, const char *handle,
           const Csi__V1__CreateVolumeRequest *request, const char *fs_type, int64_t size,
           struct arena *arena)
{
    volume_record *record = oim_volume_new(handle, arena);
    if (oim->is_in_cluster)
        record->home = (char *)oim->own_home;
    record->name = request->name;
    record->size_bytes = size;
    record->fs_type = (char *)fs_type;
    return record;
}

/* Creates a missing bdev again, as after a reboot of the controller. */
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
        volume->record = new_record(oim, volume->handle, request, fs_type, size, arena);
    if (is_new || !exists)
        error = remember(oim, volume, exists, wants_block(request));
    return error ? error : provision(oim, call, volume, is_new);
}

HANDLER(oim_create_volume, CreateVolume)
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
        reply->volume = oim_volume_message(oim, volume.record, arena);
    return error;
}
