/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls: a node of the cluster may speak for itself only. */
#ifndef CSI_CALLER_H
#define CSI_CALLER_H

#include "rpc/server/call.h"

/*
 * PERMISSION_DENIED: the caller's certificate is not that of node.ID. Without certificates, and for
 * calls of this machine and this process, every claim is accepted.
 */
MUST_CHECK struct error *caller_check_node(const struct call *call, const char *node_id);

#endif
