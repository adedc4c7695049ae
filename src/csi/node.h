/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Node: volumes at paths of this node. */
#ifndef CSI_NODE_H
#define CSI_NODE_H

#include "csi/controller.h"

/* `controller` must outlive the server. */
void node_add(struct server *server, struct controller *controller);

#endif
