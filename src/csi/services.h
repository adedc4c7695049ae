/* SPDX-License-Identifier: Apache-2.0 */
/* The services of CSI on what this node keeps itself, together. */
#ifndef CSI_SERVICES_H
#define CSI_SERVICES_H

#include "csi/identity.h"

#define SERVICES_COUNT 5

struct csi_service {
    const struct service *service;
    const void *handlers;
    void *context;
};

/* Identity, Controller, Node, GroupController, SnapshotMetadata. `identity` and its controller must outlive whoever uses them. */
void services_list(struct identity *identity, struct csi_service out[SERVICES_COUNT]);

#endif
