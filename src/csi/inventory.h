/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Inventory: what is kept here, by name as well as by id. */
#ifndef CSI_INVENTORY_H
#define CSI_INVENTORY_H

#include "proto/inventory.rpc.h"

/* Their context is a struct engine. */
extern const struct skycap_v1_inventory inventory_handlers;

#endif
