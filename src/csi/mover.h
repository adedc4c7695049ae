/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Mover, for other nodes. The context is the controller. */
#ifndef CSI_MOVER_H
#define CSI_MOVER_H

#include "proto/move.rpc.h"

extern const struct skycap_v1_mover mover_handlers;

#endif
