/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Inventory: what is kept here, by name as well as by id. */
#ifndef CSI_INVENTORY_H
#define CSI_INVENTORY_H

#include "rpc/server.h"
#include "volumes/engine.h"

/* `engine` must outlive the server. */
void inventory_add(struct server *server, struct engine *engine);

#endif
