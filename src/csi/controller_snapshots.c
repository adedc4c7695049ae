/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller: snapshots. */
#include <string.h>

#include "csi/checks.h"
#include "csi/controller_internal.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "csi/topology.h"
#include "message/message_map.h"
#include "volumes/export.h"
#include "volumes/parameter_table.h"
#include "volumes/snapshot.h"

static Csi__V1__Snapshot *
snapshot_message(struct call *call, const snapshot_record *record)
{
    Csi__V1__Snapshot *snapshot = messages_snapshot(record, call_arena(call));
    messages_set_topology(call_context(call), snapshot, call_arena(call));
    return snapshot;
}

/* The parameter "export": the repository must be known before the snapshot is taken. */
static struct error *
check_export(struct call *call, const char *repository)
{
    struct repository_place place;
    if (!repository)
        return NULL;
    struct error *error =
        repository_pool_find(controller_engine(call), repository, call_arena(call), &place);
    if (error && error->code == CODE_NOT_FOUND)
        error->code = CODE_INVALID_ARGUMENT;
    return error_wrap(error, "parameter \"" PARAMETER_EXPORT "\"");
}

/*
 * In the background. A snapshot that is still being copied is exported when the request is
 * repeated, as sidecars do until it is ready.
 */
static struct error *
begin_export(struct call *call, const snapshot_record *record, const char *repository)
{
    const char *operation;
    if (!repository || record->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        return NULL;
    const struct export_request request = {
        .handle = record->handle, .repository = repository, .urgency = EXPORT_IN_BACKGROUND};
    return export_start(controller_engine(call), &request, call_arena(call), &operation);
}

HANDLER(controller_create_snapshot, CreateSnapshot)
{
    struct arena *arena = call_arena(call);
    struct text_map parameters =
        message_map_read(request->parameters, request->n_parameters, arena);
    snapshot_record *record;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_name("name", request->name);
    if (!error)
        error = checks_id("source_volume_id", request->source_volume_id);
    if (!error)
        error = topology_check(controller_engine(call), request->accessibility_requirements, arena);
    const char *source, *repository = text_map_find(&parameters, PARAMETER_EXPORT);
    if (!error)
        error = ids_find_handle(ID_VOLUME, request->source_volume_id, &source);
    if (!error)
        error = check_export(call, repository);
    if (!error)
        error = snapshot_create(controller_engine(call), request->name, source, &parameters,
                                controller_wait_ms(call), arena, &record);
    if (!error)
        error = begin_export(call, record, repository);
    if (!error)
        reply->snapshot = snapshot_message(call, record);
    return error;
}

HANDLER(controller_delete_snapshot, DeleteSnapshot)
{
    (void)reply;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("snapshot_id", request->snapshot_id);
    const char *handle = ids_handle(ID_SNAPSHOT, request->snapshot_id);
    if (error || !handle)
        return error;
    return snapshot_delete(controller_engine(call), handle);
}

HANDLER(controller_get_snapshot, GetSnapshot)
{
    struct arena *arena = call_arena(call);
    snapshot_record *record;
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("snapshot_id", request->snapshot_id);
    const char *handle;
    if (!error)
        error = ids_find_handle(ID_SNAPSHOT, request->snapshot_id, &handle);
    if (!error)
        error = snapshot_get_shown(controller_engine(call), handle, arena, &record);
    if (!error)
        reply->snapshot = snapshot_message(call, record);
    return error;
}

/* ---- listing ---- */

static void
add_entry(struct call *call, Csi__V1__ListSnapshotsResponse *reply, const snapshot_record *record)
{
    Csi__V1__ListSnapshotsResponse__Entry *entry = arena_alloc(call_arena(call), sizeof *entry);
    csi__v1__list_snapshots_response__entry__init(entry);
    entry->snapshot = snapshot_message(call, record);
    reply->entries[reply->n_entries++] = entry;
}

/* An unknown id results in an empty list. */
static struct error *
list_one(struct call *call, const Csi__V1__ListSnapshotsRequest *request,
         Csi__V1__ListSnapshotsResponse *reply)
{
    struct arena *arena = call_arena(call);
    snapshot_record *record;
    const char *handle = ids_handle(ID_SNAPSHOT, request->snapshot_id);
    if (!handle)
        return NULL;
    struct error *error = snapshot_get_shown(controller_engine(call), handle, arena, &record);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    const char *source = ids_handle(ID_VOLUME, request->source_volume_id);
    reply->entries = arena_alloc(arena, sizeof(void *));
    if (!request->source_volume_id[0] || (source && strcmp(source, record->source_handle) == 0))
        add_entry(call, reply, record);
    return NULL;
}

HANDLER(controller_list_snapshots, ListSnapshots)
{
    struct arena *arena = call_arena(call);
    struct snapshot_page page;
    const char *after, *source = NULL;
    struct error *error = checks_maps(&request->base);
    if (error)
        return error;
    if (request->snapshot_id[0] && request->max_entries >= 0)
        return list_one(call, request, reply);
    error = ids_read_page(ID_SNAPSHOT, request->starting_token, request->max_entries, &after);
    if (error)
        return error;
    if (request->source_volume_id[0]) {
        source = ids_handle(ID_VOLUME, request->source_volume_id);
        if (!source)
            return NULL;
    }
    error = snapshot_list(controller_engine(call), source, after,
                          controller_limit(request->max_entries), arena, &page);
    if (error)
        return error;
    reply->entries = arena_alloc(arena, page.count * sizeof(void *));
    for (size_t i = 0; i < page.count; i++)
        add_entry(call, reply, page.snapshots[i]);
    if (page.next)
        reply->next_token = ids_print(ID_SNAPSHOT, page.next, arena);
    return NULL;
}
