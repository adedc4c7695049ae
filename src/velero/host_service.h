/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.VeleroHost: the snapshots of a host (skycap velero host) as operations of this server,
 * so that they can be watched and cancelled here. The host works and reports; the server only keeps
 * the record.
 */
#ifndef VELERO_HOST_SERVICE_H
#define VELERO_HOST_SERVICE_H

#include "ops/ops.h"
#include "rpc/server/server.h"

#define HOST_OPERATION "velero-snapshot" /* the kind */

/* `ops` must outlive the server. */
void host_service_add(struct server *server, struct ops *ops);

/* Ends the operations of an earlier process as failed: their hosts report to nobody any more. */
MUST_CHECK struct error *host_service_resume(struct ops *ops);

#endif
