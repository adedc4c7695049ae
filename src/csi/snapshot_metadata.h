/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.SnapshotMetadata: which bytes of a snapshot are there, and which differ from an earlier one; for backups. */
#ifndef CSI_SNAPSHOT_METADATA_H
#define CSI_SNAPSHOT_METADATA_H

#include "csi/controller.h"

/* `controller` must outlive the server. */
void snapshot_metadata_add(struct server *server, struct controller *controller);

#endif
