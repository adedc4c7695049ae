/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi.v1.SnapshotMetadata: which bytes of a snapshot are there, and which differ from an earlier
 * one; for backups.
 */
#ifndef CSI_SNAPSHOT_METADATA_H
#define CSI_SNAPSHOT_METADATA_H

#include "csi/controller.h"

/* Their context is a struct controller. */
extern const struct csi_v1_snapshot_metadata snapshot_metadata_handlers;

#endif
