/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver `csi`: somebody else's CSI driver behind its socket, maybe started and kept running by us. Its settings are in csi_options.h.
 *
 * Calls to it are bounded in number (RESOURCE_EXHAUSTED beyond it) and in time, and refused at once while it does not answer
 * (UNAVAILABLE): one that hangs costs nobody else anything. What it answers is passed on as it is, errors too.
 */
#ifndef DRIVERS_CSI_H
#define DRIVERS_CSI_H

#include "drivers/driver.h"

/* The driver's own name for a node of the orchestrator's, as `node-ids:` has it; NULL: it is not there, or the driver is no `csi`. The driver's
   as long as it lives. */
const char *csi_find_node_id(const struct driver *driver, const char *node);

#endif
