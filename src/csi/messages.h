/* SPDX-License-Identifier: Apache-2.0 */
/* Records as CSI's messages. All lives in the arena. */
#ifndef CSI_MESSAGES_H
#define CSI_MESSAGES_H

#include "csi/controller.h"
#include "node/health.h"
#include "node/usage.h"
#include "proto/csi.pb-c.h"
#include "volumes/engine.h"
#include "volumes/group.h"

Csi__V1__Volume *messages_volume(const struct engine *engine, const volume_record *record,
                                 struct arena *arena);
Csi__V1__Snapshot *messages_snapshot(const snapshot_record *record, struct arena *arena);
Csi__V1__VolumeGroupSnapshot *messages_group(const struct group *group, struct arena *arena);

/* Where a snapshot is usable is told only to those who asked for CSI 1.13. */
void messages_tell_place(const struct controller *controller, Csi__V1__Snapshot *snapshot,
                         struct arena *arena);

/* The one segment that says which node. */
Csi__V1__Topology *messages_topology(const char *node_id, struct arena *arena);

/* The nodes that it is attached to, as CSI writes lists. */
char **messages_node_ids(const volume_record *record, struct arena *arena, size_t *count);

/* What is wrong with a volume, as CSI 1.13 says it and as it was said before. */
Csi__V1__VolumeHealth *messages_health(const char *volume_id, const struct health_report *report,
                                       struct arena *arena);
Csi__V1__VolumeCondition *messages_condition(const struct health_report *report,
                                             struct arena *arena);

/* All that was asked is so. */
Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *messages_confirmation(
    const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct arena *arena);

/* How full a volume is. */
void messages_add_usage(const struct volume_usage *usage, struct arena *arena,
                        Csi__V1__NodeGetVolumeStatsResponse *reply);

#endif
