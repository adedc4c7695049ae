/* SPDX-License-Identifier: Apache-2.0 */
/* The services on what this node keeps itself, together. */
#ifndef CSI_SERVICES_H
#define CSI_SERVICES_H

#include "csi/identity.h"

/* The two sides of CSI, which need not be served by one process. */
enum services_side {
    SERVICES_NODE = 1,
    SERVICES_CONTROLLER = 2,
};

#define SERVICES_COUNT 5     /* of CSI */
#define SERVICES_ALL_COUNT 7 /* and ours behind them */

struct csi_service {
    const struct service *service;
    const void *handlers;
    void *context;
};

/*
 * Identity, Controller, Node, GroupController, SnapshotMetadata; Operations, Inventory. `identity`
 * and its controller must outlive whoever uses them.
 */
void services_list(struct identity *identity, struct csi_service out[SERVICES_ALL_COUNT]);

/*
 * Whether the service is of one of the sides: Node of one, Identity and ours of both, the rest of
 * the other.
 */
bool services_is_of(const struct service *service, unsigned sides);

/*
 * Runs the method of the same name that one of the services has, by call_delegate: the method that
 * is given may be that of another table, which knows nothing of these handlers. UNIMPLEMENTED: none
 * has it.
 */
MUST_CHECK struct error *services_run(const struct csi_service *services, size_t count,
                                      struct call *call, const struct method *method,
                                      const ProtobufCMessage *request, ProtobufCMessage *reply);

#endif
