/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Inventory: what is kept here, by name as well as by id. */
#ifndef CSI_INVENTORY_H
#define CSI_INVENTORY_H

#include "proto/inventory.rpc.h"
#include "volumes/engine.h"

/* Their context is a struct engine. */
extern const struct skycap_v1_inventory inventory_handlers;

/* The message of a snapshot or of a copy of one. In the arena. */
MUST_CHECK struct error *inventory_make_snapshot(struct engine *engine,
                                                 const snapshot_record *record, struct arena *arena,
                                                 Skycap__V1__SnapshotInfo **out);

#endif
