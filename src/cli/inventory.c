/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for volumes and snapshots: see inventory.h. */
#include "cli/inventory.h"

#include <string.h>
#include <time.h>

#include "base/size_text.h"
#include "cli/table.h"
#include "message/message_json.h"

/* ---- requests ---- */

struct error *
inventory_find_volume(struct client *client, const char *text, volume_info **out)
{
    Skycap__V1__GetVolumeRequest request = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse *reply;
    request.volume = (char *)text;
    struct error *error = client_ask(client, "skycap.v1.Inventory/GetVolume", &request, &reply);
    if (!error)
        *out = reply->volume;
    return error;
}

struct error *
inventory_find_snapshot(struct client *client, const char *text, snapshot_info **out)
{
    Skycap__V1__GetSnapshotRequest request = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetSnapshotResponse *reply;
    request.snapshot = (char *)text;
    struct error *error = client_ask(client, "skycap.v1.Inventory/GetSnapshot", &request, &reply);
    if (!error)
        *out = reply->snapshot;
    return error;
}

struct error *
inventory_show_volume(struct client *client, const char *id)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, id, &volume);
    if (!error && client->as_json)
        client_print_json(volume, MESSAGE_JSON_PRETTY);
    else if (!error)
        inventory_print_volumes(&volume, 1, &client->arena);
    return error;
}

struct error *
inventory_show_snapshot(struct client *client, const char *id)
{
    snapshot_info *snapshot;
    struct error *error = inventory_find_snapshot(client, id, &snapshot);
    if (!error && client->as_json)
        client_print_json(snapshot, MESSAGE_JSON_PRETTY);
    else if (!error)
        inventory_print_snapshots(&snapshot, 1, &client->arena);
    return error;
}

/* ---- printing ---- */

const char *
inventory_bytes_text(uint64_t bytes, struct arena *arena)
{
    char *text = arena_alloc(arena, 32);
    size_text_print(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes, text, 32);
    return text;
}

const char *
inventory_size_text(int64_t bytes, struct arena *arena)
{
    char *text = arena_alloc(arena, 32);
    if (!bytes)
        return "unlimited";
    size_text_print(bytes, text, 32);
    return text;
}

const char *
inventory_time_text(const Google__Protobuf__Timestamp *time, struct arena *arena)
{
    char *text = arena_alloc(arena, 32);
    time_t seconds = time ? (time_t)time->seconds : 0;
    struct tm local;
    if (!time || !localtime_r(&seconds, &local) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S", &local))
        return "";
    return text;
}

static const char *
type_of(const volume_info *volume, struct arena *arena)
{
    return volume->ephemeral ? arena_print(arena, "%s, inline", volume->type) : volume->type;
}

static const char *
state_of(const volume_info *volume)
{
    if (!volume->ready)
        return volume->moving_to[0] ? "moving" : "copying";
    return volume->condition && volume->condition->abnormal ? "abnormal" : "ready";
}

/* The paths where it is published, separated by commas. */
static const char *
places_of(const volume_info *volume, struct arena *arena)
{
    const char *places = "";
    for (size_t i = 0; i < volume->n_uses; i++)
        if (!volume->uses[i]->staging)
            places =
                arena_print(arena, "%s%s%s", places, places[0] ? "," : "", volume->uses[i]->path);
    return places;
}

/* The name of the source, or its id if it has no name any more. */
static const char *
source_of(const volume_info *volume)
{
    const Csi__V1__VolumeContentSource *source = volume->volume->content_source;
    if (volume->source_name[0] || !source)
        return volume->source_name;
    return source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME
               ? source->volume->volume_id
               : source->snapshot->snapshot_id;
}

static bool
are_on_several_nodes(volume_info *const *volumes, size_t count)
{
    const char *first = "";
    for (size_t i = 0; i < count; i++) {
        const char *node = volumes[i]->node_id;
        if (node[0] && first[0] && strcmp(node, first) != 0)
            return true;
        first = node[0] ? node : first;
    }
    return false;
}

/* Volumes of one node need no column that says so. */
void
inventory_print_volumes(volume_info *const *volumes, size_t count, struct arena *arena)
{
    static const char *const headings[] = {"NAME",  "SIZE", "TYPE", "FROM",
                                           "STATE", "ID",   "NODE", "AT"};
    static const char *const without_node[] = {"NAME", "SIZE", "TYPE", "FROM", "STATE", "ID", "AT"};
    bool has_nodes = are_on_several_nodes(volumes, count);
    struct table table AUTO(table_clear);
    table_init(&table, has_nodes ? headings : without_node,
               has_nodes ? COUNT_OF(headings) : COUNT_OF(without_node));
    for (size_t i = 0; i < count; i++) {
        table_add(&table, volumes[i]->name);
        table_add(&table, inventory_size_text(volumes[i]->volume->capacity_bytes, arena));
        table_add(&table, type_of(volumes[i], arena));
        table_add(&table, source_of(volumes[i]));
        table_add(&table, state_of(volumes[i]));
        table_add(&table, volumes[i]->volume->volume_id);
        if (has_nodes)
            table_add(&table, volumes[i]->node_id);
        table_add(&table, places_of(volumes[i], arena)); /* last, because it may be long */
    }
    table_print(&table);
}

void
inventory_print_snapshots(snapshot_info *const *snapshots, size_t count, struct arena *arena)
{
    static const char *const headings[] = {"NAME", "SIZE", "TYPE", "OF", "STATE", "TAKEN", "ID"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    for (size_t i = 0; i < count; i++) {
        const Csi__V1__Snapshot *snapshot = snapshots[i]->snapshot;
        const char *source = snapshots[i]->source_name;
        table_add(&table, snapshots[i]->name);
        table_add(&table,
                  snapshot->size_bytes ? inventory_size_text(snapshot->size_bytes, arena) : "");
        table_add(&table, snapshots[i]->type);
        table_add(&table, source[0] ? source : snapshot->source_volume_id);
        table_add(&table, snapshot->ready_to_use ? "ready" : "copying");
        table_add(&table, inventory_time_text(snapshot->creation_time, arena));
        table_add(&table, snapshot->snapshot_id);
    }
    table_print(&table);
}
