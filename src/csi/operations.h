/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Operations: how far the long work of this node is. */
#ifndef CSI_OPERATIONS_H
#define CSI_OPERATIONS_H

#include "csi/controller.h"
#include "ops/ops.h"
#include "proto/skycap.rpc.h"

/* Their context is a struct controller. */
extern const struct skycap_v1_operations operations_handlers;

/*
 * A record as the message that tells of it, in the arena. Copies of this node's have ids
 * v:local/HANDLE and s:local/HANDLE.
 */
void operations_fill(Skycap__V1__Operation *out, const operation_record *record,
                     struct arena *arena);

/* In the other direction: by which name ops/ops.h knows the operation. */
const char *operations_read_id(const char *id);

#endif
