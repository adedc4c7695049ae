/* SPDX-License-Identifier: Apache-2.0 */
/* Making the target of a copy: see cross_copy_target.h. */
#include "connections/copy/cross_copy_target.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "connections/copy/listed_ids.h"
#include "connections/copy/source_capability.h"
#include "connections/forward/forward.h"
#include "connections/forward/new_volume.h"
#include "connections/request/map_field.h"
#include "connections/request/secrets.h"
#include "message/message_bytes.h"

#define WORK_NAME_BYTES 8

/* ---- the source ---- */

/* With the secrets of the request that name its connection, and no others. */
static struct error *
ask_source(struct call *call, const struct connection_set *set, struct connection *from,
           const Csi__V1__CreateVolumeRequest *asked, const char *method, ProtobufCMessage *request,
           ProtobufCMessage *reply)
{
    struct arena *arena = call_arena(call);
    struct map_field given, own;
    map_field_find((ProtobufCMessage *)&asked->base, "secrets", &given);
    map_field_find(request, "secrets", &own);
    struct text_map all = map_field_read(&given, arena);
    struct text_map secrets = secrets_of(set, from, &all, arena);
    map_field_write(&own, &secrets, arena);
    return forward_call(router_of(call), set, from, call, service_find_method(method), request,
                        reply);
}

/* Every driver supports ValidateVolumeCapabilities, so it checks that the volume exists. */
static struct error *
check_source_volume(struct call *call, const struct connection_set *set, struct connection *from,
                    const Csi__V1__CreateVolumeRequest *asked)
{
    Csi__V1__ValidateVolumeCapabilitiesRequest request =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;
    Csi__V1__ValidateVolumeCapabilitiesResponse reply =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__INIT;
    request.volume_id = asked->volume_content_source->volume->volume_id;
    struct source_capability capability;
    source_capability_init(&capability, asked->volume_capabilities[0]);
    request.volume_capabilities = (Csi__V1__VolumeCapability *[]){&capability.capability};
    request.n_volume_capabilities = 1;
    return ask_source(call, set, from, asked, "/csi.v1.Controller/ValidateVolumeCapabilities",
                      &request.base, &reply.base);
}

/* If the driver cannot list snapshots, the copy itself fails later. */
static struct error *
check_source_snapshot(struct call *call, const struct connection_set *set, struct connection *from,
                      const Csi__V1__CreateVolumeRequest *asked)
{
    const char *id = asked->volume_content_source->snapshot->snapshot_id;
    Csi__V1__ListSnapshotsRequest request = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Csi__V1__ListSnapshotsResponse reply = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
    if (!CONNECTION_CAN(from, LIST_SNAPSHOTS))
        return NULL;
    request.snapshot_id = (char *)id;
    struct error *error = ask_source(call, set, from, asked, "/csi.v1.Controller/ListSnapshots",
                                     &request.base, &reply.base);
    if (!error && !reply.n_entries)
        error = error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", id);
    return error;
}

static struct error *
check_source(struct call *call, const struct connection_set *set, struct connection *from,
             const Csi__V1__CreateVolumeRequest *asked)
{
    const Csi__V1__VolumeContentSource *source = asked->volume_content_source;
    return source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT
               ? check_source_snapshot(call, set, from, asked)
               : check_source_volume(call, set, from, asked);
}

/* ---- the target ---- */

static char *
make_work_name(struct arena *arena)
{
    unsigned char bytes[WORK_NAME_BYTES];
    char *name = arena_alloc(arena, 2 * sizeof bytes + 1);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        memory_exhausted();
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(name + 2 * i, 3, "%02x", bytes[i]);
    return name;
}

static copy_record *
new_record(const struct connection *from, const struct connection *to,
           const Csi__V1__CreateVolumeRequest *request, struct arena *arena)
{
    copy_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__cross_copy_record__init(record);
    record->request = message_bytes_copy(&request->base, arena);
    record->had_secrets = record->request->n_secrets > 0;
    record->request->n_secrets = 0;
    record->from_connection = (char *)from->spec->name;
    record->to_connection = (char *)to->spec->name;
    record->work_name = make_work_name(arena);
    return record;
}

/* Does the error come from the driver, and mean that it has not created the volume? */
static bool
is_refusal(const struct connection *connection, const struct error *error)
{
    switch (error->code) {
    case CODE_INVALID_ARGUMENT:
    case CODE_NOT_FOUND:
    case CODE_ALREADY_EXISTS:
    case CODE_PERMISSION_DENIED:
    case CODE_RESOURCE_EXHAUSTED:
    case CODE_FAILED_PRECONDITION:
    case CODE_OUT_OF_RANGE:
        return error->from_peer || connection->spec->driver->speaks_our_ids;
    default:
        return false;
    }
}

static struct error *
make_target(struct call *call, const struct connection_set *set, struct connection *to,
            const Csi__V1__CreateVolumeRequest *asked, copy_record *record)
{
    /* The ids and parameters in it are changed on the way to the driver. */
    Csi__V1__CreateVolumeRequest *request = message_bytes_copy(&asked->base, call_arena(call));
    Csi__V1__CreateVolumeResponse made = CSI__V1__CREATE_VOLUME_RESPONSE__INIT;
    request->volume_content_source = NULL;
    struct error *error = new_volume_create(router_of(call), call, set, to, request, &made);
    if (error)
        return error;
    record->volume = made.volume;
    record->volume->content_source = record->request->volume_content_source;
    return NULL;
}

/* ---- whether the target is new ---- */

/*
 * Lists contain ids, not names, so nobody can ask whether a volume of this name exists. But a
 * volume whose id was not listed before CreateVolume, and is listed after it, is new. The earlier
 * ids are stored first: if the answer is lost, the repeated request finds the volume listed.
 */
static struct error *
write_plan(struct router *router, copy_record *record, struct arena *arena, struct copy_row *found)
{
    struct store_change change = cross_copy_rows_change(
        cross_copy_rows_key(CROSS_COPY_UNFINISHED, record, arena), record, found->revision, arena);
    atomic_fetch_add(&router->plans, 1);
    struct error *error = store_write(router->store, &change, 1, &found->revision);
    if (error)
        atomic_fetch_sub(&router->plans, 1);
    else
        found->record = record;
    return error;
}

struct error *
cross_copy_target_delete_plan(struct router *router, const struct copy_row *found,
                              struct arena *arena)
{
    struct store_change change = {
        .key = cross_copy_rows_key(CROSS_COPY_UNFINISHED, found->record, arena),
        .expected = found->revision};
    struct error *error = store_write(router->store, &change, 1, NULL);
    if (!error)
        atomic_fetch_sub(&router->plans, 1);
    return error;
}

/* Deletes the plan. Takes and returns the error. */
static struct error *
give_up_plan(struct router *router, const struct copy_row *found, struct arena *arena,
             struct error *error)
{
    struct error *failure AUTO(error_cleanup) = cross_copy_target_delete_plan(router, found, arena);
    return failure ? error_wrap(error, "%s", failure->message) : error;
}

/* The plan of an earlier request stays. There is no plan if the driver cannot list its volumes. */
static struct error *
make_plan(struct call *call, const struct connection *to, copy_record *record,
          struct copy_row *found)
{
    struct listed_ids before;
    if (found->record) {
        record->to_connection = found->record->to_connection;
        record->ids_before = found->record->ids_before;
        record->n_ids_before = found->record->n_ids_before;
        return NULL;
    }
    struct error *error = listed_ids_read(router_of(call), call, to, &before);
    if (error || !before.is_known)
        return error;
    record->ids_before = before.hashes;
    record->n_ids_before = before.count;
    return write_plan(router_of(call), record, call_arena(call), found);
}

/* The volume must be listed now: an incomplete list proves nothing. */
static struct error *
check_if_new(struct call *call, const struct connection *to, copy_record *record,
             const struct copy_row *plan)
{
    struct router *router = router_of(call);
    const char *id = record->volume->volume_id;
    struct listed_ids before = {true, record->ids_before, record->n_ids_before}, now;
    bool was_there, is_there = false;
    struct error *error = listed_ids_find(router, call, &before, id, &was_there);
    if (!error && was_there)
        return give_up_plan(router, plan, call_arena(call),
                            error_new(CODE_ALREADY_EXISTS,
                                      "there was a volume \"%s\" before, with the id \"%s\"; it is "
                                      "left as it is. Use another name, or delete it first",
                                      record->request->name, id));
    if (!error)
        error = listed_ids_read(router, call, to, &now);
    if (!error && now.is_known)
        error = listed_ids_find(router, call, &now, id, &is_there);
    record->is_new = is_there;
    record->n_ids_before = 0;
    return error;
}

struct error *
cross_copy_target_make(struct call *call, const struct connection_set *set, struct connection *from,
                       struct connection *to, const Csi__V1__CreateVolumeRequest *request,
                       struct copy_row *found)
{
    struct arena *arena = call_arena(call);
    copy_record *record = new_record(from, to, request, arena);
    struct error *error = check_source(call, set, from, request);
    if (!error)
        error = make_plan(call, to, record, found);
    if (error)
        return error;
    found->is_planned = found->record;
    error = make_target(call, set, to, request, record);
    if (error)
        return found->is_planned && is_refusal(to, error)
                   ? give_up_plan(router_of(call), found, arena, error)
                   : error;
    if (found->is_planned)
        error = check_if_new(call, to, record, found);
    found->record = record;
    return error;
}
