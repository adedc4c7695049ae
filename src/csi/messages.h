/* SPDX-License-Identifier: Apache-2.0 */
/* CSI messages made from records. Everything lives in the arena. */
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

/* Sets where the snapshot can be used, with CSI 1.13 only. */
void messages_set_topology(const struct controller *controller, Csi__V1__Snapshot *snapshot,
                           struct arena *arena);

/* With one segment, the node. */
Csi__V1__Topology *messages_topology(const char *node_id, struct arena *arena);

/* The nodes that the volume is attached to. */
char **messages_node_ids(const volume_record *record, struct arena *arena, size_t *count);

/* The health of a volume, in CSI 1.13 and before. */
Csi__V1__VolumeHealth *messages_health(const char *volume_id, const struct health_report *report,
                                       struct arena *arena);
Csi__V1__VolumeCondition *messages_condition(const struct health_report *report,
                                             struct arena *arena);

/* Answers with the obstacle; NULL: confirms the request. */
void messages_confirm(const Csi__V1__ValidateVolumeCapabilitiesRequest *request,
                      const char *obstacle, struct arena *arena,
                      Csi__V1__ValidateVolumeCapabilitiesResponse *reply);

void messages_add_usage(const struct volume_usage *usage, struct arena *arena,
                        Csi__V1__NodeGetVolumeStatsResponse *reply);

#endif
