/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi.v1.Controller of the driver `oim`: a volume is a malloc bdev of the node's controller.
 * CreateVolume is in oim_create.c.
 *
 * DeleteVolume deletes the row last. A crash leaves a row without a bdev, which the repeated
 * request deletes.
 */
#include <string.h>

#include "csi/checks.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "drivers/oim_internal.h"
#include "node/mount.h"

#define TOKEN_PREFIX "after/"
#define READY SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY

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

/* Also deletes the bdev of a volume without a row: the store may have been lost. */
static HANDLER(delete_volume, DeleteVolume)
{
    (void)reply;
    struct oim_driver *oim = oim_of(call);
    struct arena *arena = call_arena(call);
    struct oim_volume volume AUTO(oim_volume_release) = {0};
    const char *handle = NULL;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = oim_volume_read_id(oim, request->volume_id, arena, &handle);
    if (error || !handle)
        return error;
    error = oim_volume_take(oim, handle, arena, &volume);
    if (!error)
        error = check_unused(oim, volume.handle, arena);
    if (!error)
        error = oim_client_provision(oim, call, volume.handle, 0);
    return error ? error : forget(oim, &volume, arena);
}

/* ---- reading ---- */

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
    const char *handle = NULL;
    struct error *error = checks_id("volume_id", id);
    if (!error)
        error = oim_volume_read_id(oim, id, arena, &handle);
    if (!error && !handle)
        error = refuse_unknown(id);
    if (!error)
        error = rows_get(&oim->engine, &volume_rows, handle, arena, &row);
    if (error)
        return error;
    *out = (volume_record *)row.record;
    return is_made(*out) ? NULL : refuse_unknown(id);
}

/* Why the request cannot be confirmed; NULL: it can. */
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
    if (oim_volume_find_parameter(request->parameters, request->n_parameters, arena) ||
        oim_volume_find_parameter(request->mutable_parameters, request->n_mutable_parameters,
                                  arena))
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
        error = oim_client_check(oim, call, volume->handle, &exists);
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
    entry->volume = oim_volume_message(oim, record, arena);
    return entry;
}

static void
add_page(const struct oim_driver *oim, const struct row_page *page, size_t most,
         struct arena *arena, Csi__V1__ListVolumesResponse *reply)
{
    const char *last = "";
    reply->entries = arena_alloc(arena, page->count * sizeof(void *));
    for (size_t i = 0; i < page->count; i++) {
        const volume_record *record = (const volume_record *)page->rows[i].record;
        if (!is_made(record))
            continue;
        if (most && reply->n_entries == most) {
            reply->next_token = arena_print(arena, TOKEN_PREFIX "%s", last);
            return;
        }
        reply->entries[reply->n_entries++] = list_entry(oim, record, arena);
        last = record->handle;
    }
}

/* A token contains the handle of the last volume of the page before. */
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
            return error_new(CODE_ABORTED,
                             "starting_token is not from this list: start again without it");
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
    reply->volume = oim_volume_message(oim, volume, arena);
    reply->status = arena_alloc(arena, sizeof *reply->status);
    csi__v1__controller_get_volume_response__volume_status__init(reply->status);
    return NULL;
}

/* ---- for routers of other nodes ---- */

/*
 * Does this node have the volume of an id without a home? Its id is from before the cluster, or it
 * was provisioned by hand: then only the controller knows. Others have a home in their ids.
 */
static struct error *
find_homeless(struct call *call, const Skycap__V1__GetVolumeRequest *request,
              Skycap__V1__GetVolumeResponse *reply)
{
    struct oim_driver *oim = oim_of(call);
    const char *handle = ids_handle(ID_VOLUME, request->volume);
    struct row row = {0};
    bool exists = false;
    (void)reply;
    if (!handle || !oim_volume_is_handle(handle))
        return refuse_unknown(request->volume);
    struct error *error = rows_get(&oim->engine, &volume_rows, handle, call_arena(call), &row);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        error = oim_client_check(oim, call, handle, &exists);
    }
    const volume_record *record = (const volume_record *)row.record;
    exists |= record && !record->home[0];
    return error || exists ? error : refuse_unknown(request->volume);
}

const struct skycap_v1_inventory oim_inventory_handlers = {
    .get_volume = {find_homeless},
};

const struct csi_v1_controller oim_controller_handlers = {
    .create_volume = {oim_create_volume},
    .delete_volume = {delete_volume},
    .validate_volume_capabilities = {validate_capabilities},
    .list_volumes = {list_volumes},
    .controller_get_volume = {get_volume},
};
