/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Operations for the operations of this node. */
#ifndef CSI_OPERATIONS_H
#define CSI_OPERATIONS_H

#include "csi/controller.h"
#include "ops/ops.h"
#include "proto/skycap.rpc.h"

/* Their context is a struct controller. */
extern const struct skycap_v1_operations operations_handlers;

/*
 * Fills the message from the record. Copies on this node have ids v:local/HANDLE and
 * s:local/HANDLE.
 */
void operations_fill(Skycap__V1__Operation *out, const operation_record *record,
                     struct arena *arena);

/* The id of the operation in ops/ops.h. */
const char *operations_read_id(const char *id);

#endif
