/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Operations: how far the long work of this node is. */
#ifndef CSI_OPERATIONS_H
#define CSI_OPERATIONS_H

#include "csi/controller.h"

/* `controller` must outlive the server. */
void operations_add(struct server *server, struct controller *controller);

#endif
