/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Node: volumes at paths of this node. */
#ifndef CSI_NODE_H
#define CSI_NODE_H

#include "csi/controller.h"

/* Their context is a struct controller. */
extern const struct csi_v1_node node_handlers;

#endif
