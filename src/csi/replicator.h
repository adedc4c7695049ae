/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Replicator, for other nodes. The context is the controller. */
#ifndef CSI_REPLICATOR_H
#define CSI_REPLICATOR_H

#include "proto/replica.rpc.h"

extern const struct skycap_v1_replicator replicator_handlers;

#endif
