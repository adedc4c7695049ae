/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.GroupController: snapshots of several volumes at one instant. */
#ifndef CSI_GROUP_CONTROLLER_H
#define CSI_GROUP_CONTROLLER_H

#include "csi/controller.h"

/* `controller` must outlive the server. */
void group_controller_add(struct server *server, struct controller *controller);

#endif
