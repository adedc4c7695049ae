/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.GroupController: snapshots of several volumes at one instant. */
#ifndef CSI_GROUP_CONTROLLER_H
#define CSI_GROUP_CONTROLLER_H

#include "csi/controller.h"

/* Their context is a struct controller. */
extern const struct csi_v1_group_controller group_controller_handlers;

#endif
