/* SPDX-License-Identifier: Apache-2.0 */
/* Inventory of third-party drivers: see driver_inventory.h. */
#include "connections/router/driver_inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "connections/forward/forward.h"
#include "connections/forward/list_end.h"
#include "connections/request/global_id.h"

typedef Csi__V1__ListVolumesResponse volumes_response;
typedef Csi__V1__ListSnapshotsResponse snapshots_response;

/* ---- any driver ---- */

bool
driver_inventory_has_volumes(const struct connection *connection)
{
    return CONNECTION_CAN(connection, LIST_VOLUMES);
}

bool
driver_inventory_has_snapshots(const struct connection *connection)
{
    return CONNECTION_CAN(connection, LIST_SNAPSHOTS);
}

static struct error *
ask(struct call *call, const struct connection_set *set, struct connection *connection,
    const char *method, ProtobufCMessage *request, ProtobufCMessage *reply)
{
    return forward_call(router_of(call), set, connection, call, service_find_method(method),
                        request, reply);
}

/* The id with the current name of its connection, as in lists. */
static const char *
id_in_lists(const struct connection *connection, enum id_kind kind, const char *id,
            struct arena *arena)
{
    struct global_id parts;
    if (!global_id_parse(kind, id, &parts))
        return id;
    return global_id_print(kind, connection->spec->name, parts.handle, arena);
}

/* ---- volumes ---- */

static volume_info *
make_volume(Csi__V1__Volume *volume, struct arena *arena)
{
    volume_info *info = arena_alloc(arena, sizeof *info);
    skycap__v1__volume_info__init(info);
    info->volume = volume;
    info->ready = true;
    return info;
}

/* The name is known if the driver uses it as the id, or as the part before the home. */
static void
take_name(volume_info *info, const struct connection *connection, struct arena *arena)
{
    const struct driver_ops *ops = connection->spec->driver;
    struct global_id parts;
    if (!ops->id_of_name || !global_id_parse(ID_VOLUME, info->volume->volume_id, &parts))
        return;
    char *name = arena_string(arena, parts.handle);
    if (ops->has_homes)
        name[strcspn(name, "@")] = '\0';
    if (strcmp(ops->id_of_name(name, arena), name) == 0)
        info->name = name;
}

static void
take_status(volume_info *info, char **node_ids, size_t count, Csi__V1__VolumeCondition *condition)
{
    info->node_ids = node_ids;
    info->n_node_ids = count;
    info->condition = condition;
}

static void
take_volumes(const struct connection *connection, const volumes_response *reply,
             struct arena *arena, struct list_page *out)
{
    out->entries = arena_alloc(arena, reply->n_entries * sizeof(void *));
    for (size_t i = 0; i < reply->n_entries; i++) {
        const Csi__V1__ListVolumesResponse__Entry *entry = reply->entries[i];
        if (!entry->volume)
            continue;
        volume_info *info = make_volume(entry->volume, arena);
        take_name(info, connection, arena);
        if (entry->status)
            take_status(info, entry->status->published_node_ids,
                        entry->status->n_published_node_ids, entry->status->volume_condition);
        out->entries[out->count++] = info;
    }
    out->next_token = reply->next_token;
}

static struct error *
list_volumes(struct call *call, const struct connection_set *set, struct connection *connection,
             const char *token, size_t most, struct list_page *out)
{
    Csi__V1__ListVolumesRequest request = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
    volumes_response reply = CSI__V1__LIST_VOLUMES_RESPONSE__INIT;
    request.starting_token = (char *)token;
    request.max_entries = (int32_t)most;
    struct error *error =
        ask(call, set, connection, "csi.v1.Controller/ListVolumes", &request.base, &reply.base);
    if (!error)
        take_volumes(connection, &reply, call_arena(call), out);
    return error;
}

struct error *
driver_inventory_list_volumes(const struct merged_list *list, struct connection *connection,
                              const char *token, size_t most, struct list_page *out)
{
    return list_volumes(list->call, list->set, connection, token, most, out);
}

static bool
find_on_page(const struct list_page *page, const char *id, void **out)
{
    for (size_t i = 0; i < page->count; i++) {
        *out = page->entries[i];
        if (strcmp(((volume_info *)*out)->volume->volume_id, id) == 0)
            return true;
    }
    return false;
}

static struct error *
find_in_list(struct call *call, const struct connection_set *set, struct connection *connection,
             const char *id, void **out)
{
    char *token AUTO(memory_cleanup) = memory_string("");
    bool is_found = false;
    struct list_end end;
    struct error *error = NULL;
    list_end_init(&end, connection->spec->name, token);
    id = id_in_lists(connection, ID_VOLUME, id, call_arena(call));
    do {
        struct call *part = call_new_part(call, 0); /* its arena holds the page */
        struct list_page page = {.next_token = ""};
        error = list_volumes(part, set, connection, token, 0, &page);
        is_found = !error && find_on_page(&page, id, out);
        if (!error && !is_found)
            error = list_end_check(&end, page.next_token);
        free(token);
        token = memory_string(page.next_token);
        if (is_found)
            call_join_part(call, part);
        else
            call_free_detached(part);
        if (!error && call_is_cancelled(call))
            error = error_new(CODE_CANCELLED, "the caller has gone");
    } while (!error && !is_found && token[0]);
    if (!error && !is_found)
        error = error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", id);
    return error;
}

static struct error *
ask_for_volume(struct call *call, const struct connection_set *set, struct connection *connection,
               const char *id, void **out)
{
    Csi__V1__ControllerGetVolumeRequest request = CSI__V1__CONTROLLER_GET_VOLUME_REQUEST__INIT;
    Csi__V1__ControllerGetVolumeResponse reply = CSI__V1__CONTROLLER_GET_VOLUME_RESPONSE__INIT;
    request.volume_id = (char *)id;
    struct error *error = ask(call, set, connection, "csi.v1.Controller/ControllerGetVolume",
                              &request.base, &reply.base);
    if (error)
        return error;
    if (!reply.volume)
        return error_new(CODE_INTERNAL,
                         "the driver behind connection \"%s\" answers without a volume",
                         connection->spec->name);
    volume_info *info = make_volume(reply.volume, call_arena(call));
    take_name(info, connection, call_arena(call));
    if (reply.status)
        take_status(info, reply.status->published_node_ids, reply.status->n_published_node_ids,
                    reply.status->volume_condition);
    *out = info;
    return NULL;
}

struct error *
driver_inventory_get_volume(struct call *call, const struct connection_set *set,
                            struct connection *connection, const char *id, void **out)
{
    struct arena *arena = call_arena(call);
    if (CONNECTION_CAN(connection, GET_VOLUME) || !connection_is_known(connection))
        return ask_for_volume(call, set, connection, id, out);
    if (CONNECTION_CAN(connection, LIST_VOLUMES))
        return find_in_list(call, set, connection, id, out);
    Csi__V1__Volume *volume = arena_alloc(arena, sizeof *volume);
    csi__v1__volume__init(volume);
    volume->volume_id = (char *)id;
    *out = make_volume(volume, arena);
    return NULL;
}

struct error *
driver_inventory_find_volume(struct call *call, const struct connection_set *set,
                             struct connection *connection, const char *name, void **out)
{
    const struct driver_ops *ops = connection->spec->driver;
    struct arena *arena = call_arena(call);
    if (!ops->id_of_name || !CONNECTION_CAN(connection, GET_VOLUME))
        return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", name);
    const char *id =
        global_id_print(ID_VOLUME, connection->spec->name, ops->id_of_name(name, arena), arena);
    return ask_for_volume(call, set, connection, id, out);
}

/* ---- snapshots ---- */

static snapshot_info *
make_snapshot(Csi__V1__Snapshot *snapshot, struct arena *arena)
{
    snapshot_info *info = arena_alloc(arena, sizeof *info);
    skycap__v1__snapshot_info__init(info);
    info->snapshot = snapshot;
    return info;
}

static void
take_snapshots(const snapshots_response *reply, struct arena *arena, struct list_page *out)
{
    out->entries = arena_alloc(arena, reply->n_entries * sizeof(void *));
    for (size_t i = 0; i < reply->n_entries; i++)
        if (reply->entries[i]->snapshot)
            out->entries[out->count++] = make_snapshot(reply->entries[i]->snapshot, arena);
    out->next_token = reply->next_token;
}

struct error *
driver_inventory_list_snapshots(const struct merged_list *list, struct connection *connection,
                                const char *of_volume, const char *token, size_t most,
                                struct list_page *out)
{
    Csi__V1__ListSnapshotsRequest request = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    snapshots_response reply = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
    request.source_volume_id = (char *)of_volume;
    request.starting_token = (char *)token;
    request.max_entries = (int32_t)most;
    struct error *error = ask(list->call, list->set, connection, "csi.v1.Controller/ListSnapshots",
                              &request.base, &reply.base);
    if (!error)
        take_snapshots(&reply, call_arena(list->call), out);
    return error;
}

static struct error *
ask_for_snapshot(struct call *call, const struct connection_set *set, struct connection *connection,
                 const char *id, void **out)
{
    Csi__V1__GetSnapshotRequest request = CSI__V1__GET_SNAPSHOT_REQUEST__INIT;
    Csi__V1__GetSnapshotResponse reply = CSI__V1__GET_SNAPSHOT_RESPONSE__INIT;
    request.snapshot_id = (char *)id;
    struct error *error =
        ask(call, set, connection, "csi.v1.Controller/GetSnapshot", &request.base, &reply.base);
    if (error)
        return error;
    if (!reply.snapshot)
        return error_new(CODE_INTERNAL,
                         "the driver behind connection \"%s\" answers without a snapshot",
                         connection->spec->name);
    *out = make_snapshot(reply.snapshot, call_arena(call));
    return NULL;
}

static struct error *
filter_snapshots(struct call *call, const struct connection_set *set, struct connection *connection,
                 const char *id, void **out)
{
    Csi__V1__ListSnapshotsRequest request = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    snapshots_response reply = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
    struct list_page page = {0};
    request.snapshot_id = (char *)id;
    struct error *error =
        ask(call, set, connection, "csi.v1.Controller/ListSnapshots", &request.base, &reply.base);
    if (error)
        return error;
    take_snapshots(&reply, call_arena(call), &page);
    if (page.count != 1)
        return error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", id);
    *out = page.entries[0];
    return NULL;
}

struct error *
driver_inventory_get_snapshot(struct call *call, const struct connection_set *set,
                              struct connection *connection, const char *id, void **out)
{
    struct arena *arena = call_arena(call);
    if (CONNECTION_CAN(connection, GET_SNAPSHOT) || !connection_is_known(connection))
        return ask_for_snapshot(call, set, connection, id, out);
    if (CONNECTION_CAN(connection, LIST_SNAPSHOTS))
        return filter_snapshots(call, set, connection, id, out);
    Csi__V1__Snapshot *snapshot = arena_alloc(arena, sizeof *snapshot);
    csi__v1__snapshot__init(snapshot);
    snapshot->snapshot_id = (char *)id;
    snapshot->ready_to_use = true;
    *out = make_snapshot(snapshot, arena);
    return NULL;
}
