/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of csi.v1.Node, one file per topic; node.c puts them into the table. */
#ifndef CSI_NODE_INTERNAL_H
#define CSI_NODE_INTERNAL_H

#include "csi/controller_internal.h"
#include "csi/node.h"

/* node_volumes.c */
HANDLER(node_stage_volume, NodeStageVolume);
HANDLER(node_unstage_volume, NodeUnstageVolume);
HANDLER(node_publish_volume, NodePublishVolume);
HANDLER(node_unpublish_volume, NodeUnpublishVolume);

/* node_state.c */
HANDLER(node_get_volume_stats, NodeGetVolumeStats);
HANDLER(node_expand_volume, NodeExpandVolume);
HANDLER(node_get_volume_health, NodeGetVolumeHealth);
HANDLER(node_get_storage_health, NodeGetStorageHealth);

#endif
