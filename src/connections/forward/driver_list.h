/* SPDX-License-Identifier: Apache-2.0 */
/* A driver's own list of volumes or snapshots, page by page, with its own ids. */
#ifndef CONNECTIONS_FORWARD_DRIVER_LIST_H
#define CONNECTIONS_FORWARD_DRIVER_LIST_H

#include "connections/config/connection.h"
#include "csi/ids.h"
#include "rpc/server/call.h"

/* The page is freed afterwards, because a list may be long. An error ends the reading. */
typedef struct error *driver_list_visit(void *context, ProtobufCMessage *page);

/*
 * Visits each page of ListVolumes (ID_VOLUME) or ListSnapshots. INTERNAL: the list does not end.
 * CANCELLED with the call. On a worker.
 */
MUST_CHECK struct error *driver_list_read(struct call *call, const struct connection *connection,
                                          enum id_kind kind, driver_list_visit *visit,
                                          void *context);

#endif
