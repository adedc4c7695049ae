/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of csi.v1.Controller, one file per topic; controller.c puts them into the table. */
#ifndef CSI_CONTROLLER_INTERNAL_H
#define CSI_CONTROLLER_INTERNAL_H

#include "csi/controller.h"
#include "proto/csi.rpc.h"
#include "rpc/server/call.h"

/* In one answer, whatever the client wants: it must fit into a message, and into memory. */
#define CONTROLLER_MOST_ENTRIES 5000

/* How many entries an answer may have; 0 of the client means as many as possible. */
static inline size_t
controller_limit(int32_t max_entries)
{
    return max_entries && max_entries < CONTROLLER_MOST_ENTRIES ? (size_t)max_entries
                                                                : CONTROLLER_MOST_ENTRIES;
}

/* controller_volumes.c */
HANDLER(controller_create_volume, CreateVolume);
HANDLER(controller_delete_volume, DeleteVolume);
HANDLER(controller_validate_capabilities, ValidateVolumeCapabilities);
HANDLER(controller_list_volumes, ListVolumes);
HANDLER(controller_get_volume, ControllerGetVolume);
HANDLER(controller_get_capacity, GetCapacity);
HANDLER(controller_expand_volume, ControllerExpandVolume);
HANDLER(controller_modify_volume, ControllerModifyVolume);

/* controller_health.c */
HANDLER(controller_get_volume_health, ControllerGetVolumeHealth);
HANDLER(controller_list_volume_health, ControllerListVolumeHealth);

/* controller_publish.c */
HANDLER(controller_publish_volume, ControllerPublishVolume);
HANDLER(controller_unpublish_volume, ControllerUnpublishVolume);

/* controller_snapshots.c */
HANDLER(controller_create_snapshot, CreateSnapshot);
HANDLER(controller_delete_snapshot, DeleteSnapshot);
HANDLER(controller_list_snapshots, ListSnapshots);
HANDLER(controller_get_snapshot, GetSnapshot);

#endif
