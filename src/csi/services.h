/* SPDX-License-Identifier: Apache-2.0 */
/* The services for the volumes of this node. */
#ifndef CSI_SERVICES_H
#define CSI_SERVICES_H

#include "csi/identity.h"

/* The two sides of CSI, which separate processes may serve. */
enum services_side {
    SERVICES_NODE = 1,
    SERVICES_CONTROLLER = 2,
};

#define SERVICES_COUNT 5      /* of CSI */
#define SERVICES_ALL_COUNT 11 /* and those of skycap.v1 after them */

struct csi_service {
    const struct service *service;
    const void *handlers;
    void *context;
};

/*
 * Identity, Controller, Node, GroupController, SnapshotMetadata; Operations, Inventory, Transfer,
 * Mover, Repositories.
 * `identity` and its controller must outlive the services.
 */
void services_list(struct identity *identity, struct csi_service out[SERVICES_ALL_COUNT]);

/* Whether the service belongs to one of the sides. Identity and skycap.v1 belong to both. */
bool services_is_of(const struct service *service, unsigned sides);

/*
 * Runs the method with the same path of one of the services, by call_delegate. `method` may come
 * from another table. UNIMPLEMENTED: there is none.
 */
MUST_CHECK struct error *services_run(const struct csi_service *services, size_t count,
                                      struct call *call, const struct method *method,
                                      const ProtobufCMessage *request, ProtobufCMessage *reply);

#endif
