/* SPDX-License-Identifier: Apache-2.0 */
/* The API of the page: volumes and snapshots. */
#include <string.h>

#include "web/api_internal.h"

typedef Skycap__V1__VolumeInfo volume_info;
typedef Skycap__V1__SnapshotInfo snapshot_info;

/* ---- parts ---- */

static const char *
volume_state(const volume_info *volume)
{
    if (volume->moving_to[0])
        return "moving";
    if (!volume->ready)
        return "copying";
    return volume->condition && volume->condition->abnormal ? "unhealthy" : "ready";
}

static const char *
source_id(const volume_info *volume)
{
    const Csi__V1__VolumeContentSource *source = volume->volume->content_source;
    if (!source)
        return "";
    if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
        return source->volume->volume_id;
    if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
        return source->snapshot->snapshot_id;
    return "";
}

/* What other drivers have made has none: its id stands for it. */
static const char *
name_of(const char *name, const char *id)
{
    return name[0] ? name : id;
}

/* Where it is: without a cluster this node. */
static const char *
node_of(const struct api_request *request, const char *node_id)
{
    bool is_alone = !request->api->options.is_in_cluster;
    return !node_id[0] && is_alone ? request->api->options.node_id : node_id;
}

static void
print_columns(struct json_writer *out, const char *const *names, size_t count)
{
    json_writer_begin(out, "columns", '[');
    for (size_t i = 0; i < count; i++)
        json_writer_text(out, NULL, names[i]);
    json_writer_end(out, ']');
}

static void
print_texts(struct json_writer *out, const char *name, char **texts, size_t count)
{
    json_writer_begin(out, name, '[');
    for (size_t i = 0; i < count; i++)
        json_writer_text(out, NULL, texts[i]);
    json_writer_end(out, ']');
}

/* ---- lists ---- */

static void
print_volume_row(const struct api_request *request, struct json_writer *out,
                 const volume_info *volume)
{
    json_writer_begin(out, NULL, '[');
    json_writer_text(out, NULL, volume->volume->volume_id);
    json_writer_text(out, NULL, name_of(volume->name, volume->volume->volume_id));
    json_writer_number(out, NULL, volume->volume->capacity_bytes);
    json_writer_text(out, NULL, volume->type);
    json_writer_text(out, NULL, node_of(request, volume->node_id));
    json_writer_text(out, NULL, volume_state(volume));
    json_writer_text(out, NULL, source_id(volume));
    json_writer_text(out, NULL, volume->source_name);
    json_writer_time(out, NULL, volume->created);
    json_writer_end(out, ']');
}

struct error *
api_list_volumes(struct api_request *request)
{
    static const char *const columns[] = {"id",    "name",     "sizeBytes",  "type",     "node",
                                          "state", "sourceId", "sourceName", "createdMs"};
    Skycap__V1__ListVolumesRequest asked = SKYCAP__V1__LIST_VOLUMES_REQUEST__INIT;
    Skycap__V1__ListVolumesResponse *reply;
    asked.brief = true;
    struct error *error = api_read_page(request, &asked.max_entries, &asked.starting_token);
    if (!error)
        error = api_read(request, "skycap.v1.Inventory/ListVolumes", &asked, &reply);
    if (error)
        return error;
    print_columns(&request->out, columns, COUNT_OF(columns));
    json_writer_begin(&request->out, "rows", '[');
    for (size_t i = 0; i < reply->n_volumes; i++)
        if (reply->volumes[i]->volume)
            print_volume_row(request, &request->out, reply->volumes[i]);
    json_writer_end(&request->out, ']');
    json_writer_text(&request->out, "next", reply->next_token);
    api_print_degraded(request);
    return NULL;
}

static void
print_snapshot_row(const struct api_request *request, struct json_writer *out,
                   const snapshot_info *snapshot)
{
    json_writer_begin(out, NULL, '[');
    json_writer_text(out, NULL, snapshot->snapshot->snapshot_id);
    json_writer_text(out, NULL, name_of(snapshot->name, snapshot->snapshot->snapshot_id));
    json_writer_number(out, NULL, snapshot->snapshot->size_bytes);
    json_writer_text(out, NULL, snapshot->type);
    json_writer_text(out, NULL, snapshot->snapshot->source_volume_id);
    json_writer_text(out, NULL, snapshot->source_name);
    json_writer_text(out, NULL, node_of(request, snapshot->node_id));
    json_writer_bool(out, NULL, snapshot->snapshot->ready_to_use);
    json_writer_time(out, NULL, snapshot->snapshot->creation_time);
    json_writer_end(out, ']');
}

struct error *
api_list_snapshots(struct api_request *request)
{
    static const char *const columns[] = {"id",         "name", "sizeBytes", "type",     "volumeId",
                                          "volumeName", "node", "ready",     "createdMs"};
    Skycap__V1__ListSnapshotsRequest asked = SKYCAP__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Skycap__V1__ListSnapshotsResponse *reply;
    struct error *error = api_read_page(request, &asked.max_entries, &asked.starting_token);
    if (!error)
        error = api_read(request, "skycap.v1.Inventory/ListSnapshots", &asked, &reply);
    if (error)
        return error;
    print_columns(&request->out, columns, COUNT_OF(columns));
    json_writer_begin(&request->out, "rows", '[');
    for (size_t i = 0; i < reply->n_snapshots; i++)
        if (reply->snapshots[i]->snapshot)
            print_snapshot_row(request, &request->out, reply->snapshots[i]);
    json_writer_end(&request->out, ']');
    json_writer_text(&request->out, "next", reply->next_token);
    api_print_degraded(request);
    return NULL;
}

/* ---- one ---- */

static struct error *
read_id(const struct api_request *request, char **out)
{
    const char *id;
    struct error *error = http_request_parameter(request->http, "id", request->arena, &id);
    if (!error && !id[0])
        error = error_new(CODE_INVALID_ARGUMENT, "id: give one");
    *out = (char *)id;
    return error;
}

static void
print_source(struct json_writer *out, const volume_info *volume)
{
    const Csi__V1__VolumeContentSource *source = volume->volume->content_source;
    if (!source) {
        json_writer_null(out, "source");
        return;
    }
    bool is_volume = source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
    json_writer_begin(out, "source", '{');
    json_writer_text(out, "kind", is_volume ? "volume" : "snapshot");
    json_writer_text(out, "id", source_id(volume));
    json_writer_text(out, "name", volume->source_name);
    json_writer_end(out, '}');
}

/* Only the node where it is published knows how full it is; -1: unknown. */
static int64_t
used_bytes(struct api_request *request, const volume_info *volume)
{
    Csi__V1__NodeGetVolumeStatsRequest asked = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;
    Csi__V1__NodeGetVolumeStatsResponse *reply;
    if (!volume->n_uses)
        return -1;
    asked.volume_id = volume->volume->volume_id;
    asked.volume_path = volume->uses[volume->n_uses - 1]->path;
    struct error *error AUTO(error_cleanup) =
        api_read(request, "csi.v1.Node/NodeGetVolumeStats", &asked, &reply);
    if (error)
        return -1;
    for (size_t i = 0; i < reply->n_usage; i++)
        if (reply->usage[i]->unit == CSI__V1__VOLUME_USAGE__UNIT__BYTES)
            return reply->usage[i]->used;
    return -1;
}

static void
print_uses(struct json_writer *out, const volume_info *volume)
{
    print_texts(out, "attachedTo", volume->node_ids, volume->n_node_ids);
    json_writer_begin(out, "publishedAt", '[');
    for (size_t i = 0; i < volume->n_uses; i++)
        if (!volume->uses[i]->staging)
            json_writer_text(out, NULL, volume->uses[i]->path);
    json_writer_end(out, ']');
}

struct error *
api_show_volume(struct api_request *request)
{
    Skycap__V1__GetVolumeRequest asked = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse *reply;
    struct json_writer *out = &request->out;
    struct error *error = read_id(request, &asked.volume);
    if (!error)
        error = api_read(request, "skycap.v1.Inventory/GetVolume", &asked, &reply);
    if (error)
        return error;
    const volume_info *volume = reply->volume;
    int64_t used = used_bytes(request, volume);
    json_writer_text(out, "id", volume->volume->volume_id);
    json_writer_text(out, "name", name_of(volume->name, volume->volume->volume_id));
    json_writer_number(out, "sizeBytes", volume->volume->capacity_bytes);
    json_writer_text(out, "type", volume->type);
    json_writer_text(out, "node", node_of(request, volume->node_id));
    json_writer_text(out, "state", volume_state(volume));
    json_writer_text(out, "health", volume->condition ? volume->condition->message : "");
    json_writer_time(out, "createdMs", volume->created);
    print_source(out, volume);
    if (used < 0)
        json_writer_null(out, "usedBytes");
    else
        json_writer_number(out, "usedBytes", used);
    json_writer_map(out, "parameters", volume->parameters, volume->n_parameters);
    print_uses(out, volume);
    json_writer_text(out, "movingTo", volume->moving_to);
    if (volume->unavailable_ms)
        json_writer_number(out, "unavailableMs", (int64_t)volume->unavailable_ms);
    else
        json_writer_null(out, "unavailableMs");
    return NULL;
}

static const char *
export_state(const Skycap__V1__SnapshotExportInfo *export)
{
    if (export->id[0])
        return "exported";
    return export->error[0] ? "failed" : "running";
}

static void
print_exports(struct json_writer *out, const snapshot_info *snapshot)
{
    json_writer_begin(out, "exports", '[');
    for (size_t i = 0; i < snapshot->n_exports; i++) {
        const Skycap__V1__SnapshotExportInfo *export = snapshot->exports[i];
        json_writer_begin(out, NULL, '{');
        json_writer_text(out, "repository", export->repository);
        json_writer_text(out, "state", export_state(export));
        json_writer_time(out, "timeMs", export->exported);
        json_writer_end(out, '}');
    }
    json_writer_end(out, ']');
}

struct error *
api_show_snapshot(struct api_request *request)
{
    Skycap__V1__GetSnapshotRequest asked = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetSnapshotResponse *reply;
    struct json_writer *out = &request->out;
    struct error *error = read_id(request, &asked.snapshot);
    if (!error)
        error = api_read(request, "skycap.v1.Inventory/GetSnapshot", &asked, &reply);
    if (error)
        return error;
    const snapshot_info *snapshot = reply->snapshot;
    json_writer_text(out, "id", snapshot->snapshot->snapshot_id);
    json_writer_text(out, "name", name_of(snapshot->name, snapshot->snapshot->snapshot_id));
    json_writer_number(out, "sizeBytes", snapshot->snapshot->size_bytes);
    json_writer_text(out, "type", snapshot->type);
    json_writer_text(out, "volumeId", snapshot->snapshot->source_volume_id);
    json_writer_text(out, "volumeName", snapshot->source_name);
    json_writer_text(out, "node", node_of(request, snapshot->node_id));
    json_writer_bool(out, "ready", snapshot->snapshot->ready_to_use);
    json_writer_time(out, "createdMs", snapshot->snapshot->creation_time);
    json_writer_begin(out, "holders", '[');
    for (size_t i = 0; i < snapshot->n_holders; i++)
        json_writer_text(out, NULL, snapshot->holders[i]->node_id);
    json_writer_end(out, ']');
    print_exports(out, snapshot);
    return NULL;
}
