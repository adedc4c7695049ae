/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Transfer, at the node that has the data. The context is the controller. */
#ifndef CSI_TRANSFER_H
#define CSI_TRANSFER_H

#include "proto/transfer.rpc.h"

extern const struct skycap_v1_transfer transfer_handlers;

#endif
