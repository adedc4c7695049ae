/* SPDX-License-Identifier: Apache-2.0 */
/* CSI messages made from records: see messages.h. */
#include "csi/messages.h"

#include <string.h>

#include "csi/controller.h"
#include "csi/ids.h"
#include "message/message_map.h"
#include "message/message_time.h"
#include "volumes/move_rows.h"
#include "volumes/volume.h"

Csi__V1__Topology *
messages_topology(const char *node_id, struct arena *arena)
{
    struct text_map segments = {0};
    Csi__V1__Topology *topology = arena_alloc(arena, sizeof *topology);
    csi__v1__topology__init(topology);
    /* With connections, the engine may be gone when the answer is sent. */
    text_map_set(&segments, arena, IDS_TOPOLOGY_NODE, arena_string(arena, node_id));
    message_map_write(&segments, arena, &csi__v1__topology__segments_entry__descriptor,
                      &topology->segments, &topology->n_segments);
    return topology;
}

/* Turns the handles of the record's source into ids. */
static Csi__V1__VolumeContentSource *
content_source(const Csi__V1__VolumeContentSource *record, struct arena *arena)
{
    if (!record)
        return NULL;
    Csi__V1__VolumeContentSource *source = arena_alloc(arena, sizeof *source);
    csi__v1__volume_content_source__init(source);
    source->type_case = record->type_case;
    if (record->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME) {
        source->volume = arena_alloc(arena, sizeof *source->volume);
        csi__v1__volume_content_source__volume_source__init(source->volume);
        source->volume->volume_id = ids_print(ID_VOLUME, record->volume->volume_id, arena);
    } else {
        source->snapshot = arena_alloc(arena, sizeof *source->snapshot);
        csi__v1__volume_content_source__snapshot_source__init(source->snapshot);
        source->snapshot->snapshot_id =
            ids_print(ID_SNAPSHOT, record->snapshot->snapshot_id, arena);
    }
    return source;
}

/* A volume that moves to the node that publishes it is accessible from every node. */
static bool
follows(const struct engine *engine, const volume_record *record, struct arena *arena)
{
    struct text_map parameters = volume_parameters(record, arena);
    const char *mobility = text_map_find(&parameters, "mobility");
    return engine->home[0] && mobility && strcmp(mobility, "follow") == 0;
}

Csi__V1__Volume *
messages_volume(const struct engine *engine, const volume_record *record, struct arena *arena)
{
    Csi__V1__Volume *volume = arena_alloc(arena, sizeof *volume);
    csi__v1__volume__init(volume);
    volume->volume_id = ids_print(ID_VOLUME, record->handle, arena);
    volume->capacity_bytes = record->size_bytes;
    volume->content_source = content_source(record->source, arena);
    if (follows(engine, record, arena))
        return volume;
    bool is_elsewhere = record->state == VOLUME_STATE(LEFT) ||
                        record->state == VOLUME_STATE(RECEIVING) ||
                        record->state == VOLUME_STATE(SUPERSEDED);
    const char *node_id = is_elsewhere ? record->move->node_id : engine->node_id;
    volume->accessible_topology = arena_alloc(arena, sizeof(void *));
    volume->accessible_topology[0] = messages_topology(node_id, arena);
    volume->n_accessible_topology = 1;
    return volume;
}

Csi__V1__Snapshot *
messages_snapshot(const snapshot_record *record, struct arena *arena)
{
    Csi__V1__Snapshot *snapshot = arena_alloc(arena, sizeof *snapshot);
    csi__v1__snapshot__init(snapshot);
    snapshot->snapshot_id = ids_print(ID_SNAPSHOT, record->handle, arena);
    snapshot->source_volume_id = ids_print(ID_VOLUME, record->source_handle, arena);
    snapshot->size_bytes = record->size_bytes;
    snapshot->ready_to_use = record->state == SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY;
    snapshot->creation_time = message_time_new(record->created_ns, arena);
    if (record->group_handle[0])
        snapshot->group_snapshot_id = ids_print(ID_GROUP, record->group_handle, arena);
    return snapshot;
}

void
messages_set_topology(const struct controller *controller, Csi__V1__Snapshot *snapshot,
                      struct arena *arena)
{
    if (!controller->advertises_csi_1_13)
        return;
    snapshot->accessible_topology = arena_alloc(arena, sizeof(void *));
    snapshot->accessible_topology[0] = messages_topology(controller->engine->node_id, arena);
    snapshot->n_accessible_topology = 1;
}

Csi__V1__VolumeGroupSnapshot *
messages_group(const struct group *group, struct arena *arena)
{
    Csi__V1__VolumeGroupSnapshot *message = arena_alloc(arena, sizeof *message);
    csi__v1__volume_group_snapshot__init(message);
    message->group_snapshot_id = ids_print(ID_GROUP, group->record->handle, arena);
    message->creation_time = message_time_new(group->record->created_ns, arena);
    message->ready_to_use = true;
    message->snapshots = arena_alloc(arena, group->count * sizeof(void *));
    for (size_t i = 0; i < group->count; i++) {
        Csi__V1__Snapshot *snapshot = messages_snapshot(group->snapshots[i], arena);
        message->ready_to_use &= snapshot->ready_to_use;
        message->snapshots[message->n_snapshots++] = snapshot;
    }
    return message;
}

char **
messages_node_ids(const volume_record *record, struct arena *arena, size_t *count)
{
    char **ids = arena_alloc(arena, record->n_attachments * sizeof *ids);
    for (size_t i = 0; i < record->n_attachments; i++)
        ids[i] = record->attachments[i]->node_id;
    *count = record->n_attachments;
    return ids;
}

Csi__V1__VolumeHealth *
messages_health(const char *volume_id, const struct health_report *report, struct arena *arena)
{
    Csi__V1__VolumeHealth *health = arena_alloc(arena, sizeof *health);
    csi__v1__volume_health__init(health);
    health->volume_id = (char *)volume_id;
    health->health_statuses = arena_alloc(arena, report->count * sizeof(void *));
    for (; health->n_health_statuses < report->count; health->n_health_statuses++) {
        const struct problem *problem = &report->problems[health->n_health_statuses];
        Csi__V1__VolumeHealth__VolumeHealthEntry *entry = arena_alloc(arena, sizeof *entry);
        csi__v1__volume_health__volume_health_entry__init(entry);
        entry->status = (Csi__V1__VolumeHealthErrorType)problem->kind;
        entry->reason = (char *)problem->reason;
        entry->message = (char *)problem->message;
        health->health_statuses[health->n_health_statuses] = entry;
    }
    return health;
}

Csi__V1__VolumeCondition *
messages_condition(const struct health_report *report, struct arena *arena)
{
    Csi__V1__VolumeCondition *condition = arena_alloc(arena, sizeof *condition);
    csi__v1__volume_condition__init(condition);
    condition->abnormal = report->count > 0;
    condition->message =
        (char *)(report->count ? report->problems[0].message : "the volume is healthy");
    return condition;
}

#define CONFIRMED(name) csi__v1__validate_volume_capabilities_response__confirmed__##name

void
messages_confirm(const Csi__V1__ValidateVolumeCapabilitiesRequest *request, const char *obstacle,
                 struct arena *arena, Csi__V1__ValidateVolumeCapabilitiesResponse *reply)
{
    if (obstacle) {
        reply->message = (char *)obstacle;
        return;
    }
    Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *confirmed =
        arena_alloc(arena, sizeof *confirmed);
    CONFIRMED(init)(confirmed);
    confirmed->volume_capabilities = request->volume_capabilities;
    confirmed->n_volume_capabilities = request->n_volume_capabilities;
    struct text_map parameters =
        message_map_read(request->parameters, request->n_parameters, arena);
    message_map_write(&parameters, arena, &CONFIRMED(parameters_entry__descriptor),
                      &confirmed->parameters, &confirmed->n_parameters);
    parameters =
        message_map_read(request->mutable_parameters, request->n_mutable_parameters, arena);
    message_map_write(&parameters, arena, &CONFIRMED(mutable_parameters_entry__descriptor),
                      &confirmed->mutable_parameters, &confirmed->n_mutable_parameters);
    reply->confirmed = confirmed;
}

static Csi__V1__VolumeUsage *
usage_message(const struct usage_figures *figures, Csi__V1__VolumeUsage__Unit unit,
              struct arena *arena)
{
    Csi__V1__VolumeUsage *usage = arena_alloc(arena, sizeof *usage);
    csi__v1__volume_usage__init(usage);
    usage->available = figures->available;
    usage->total = figures->total;
    usage->used = figures->used;
    usage->unit = unit;
    return usage;
}

void
messages_add_usage(const struct volume_usage *usage, struct arena *arena,
                   Csi__V1__NodeGetVolumeStatsResponse *reply)
{
    reply->usage = arena_alloc(arena, 2 * sizeof(void *));
    reply->usage[reply->n_usage++] =
        usage_message(&usage->bytes, CSI__V1__VOLUME_USAGE__UNIT__BYTES, arena);
    if (usage->knows_inodes)
        reply->usage[reply->n_usage++] =
            usage_message(&usage->inodes, CSI__V1__VOLUME_USAGE__UNIT__INODES, arena);
}
