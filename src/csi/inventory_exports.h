/* SPDX-License-Identifier: Apache-2.0 */
/* Where a snapshot was exported to, and where it is being exported. */
#ifndef CSI_INVENTORY_EXPORTS_H
#define CSI_INVENTORY_EXPORTS_H

#include "proto/inventory.pb-c.h"
#include "volumes/engine.h"

/*
 * Leaves out what somebody else has removed from the repository, as far as repositories answer at
 * once. The row stays as it is.
 */
void inventory_drop_removed(struct engine *engine, snapshot_record *record, struct arena *arena);

/* The repositories that have it. */
void inventory_fill_exports(const snapshot_record *record, struct arena *arena,
                            Skycap__V1__SnapshotInfo *info);

/* Adds those that are to get it: an operation is under way, or has failed. */
MUST_CHECK struct error *inventory_add_running(struct engine *engine, const snapshot_record *record,
                                               struct arena *arena, Skycap__V1__SnapshotInfo *info);

#endif
