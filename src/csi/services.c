/* SPDX-License-Identifier: Apache-2.0 */
/* The CSI services: see services.h. */
#include "csi/services.h"

#include <string.h>

#include "csi/group_controller.h"
#include "csi/inventory.h"
#include "csi/mover.h"
#include "csi/node.h"
#include "csi/operations.h"
#include "csi/replicator.h"
#include "csi/repositories.h"
#include "csi/snapshot_metadata.h"
#include "csi/transfer.h"
#include "proto/csi.rpc.h"

void
services_list(struct identity *identity, struct csi_service out[SERVICES_ALL_COUNT])
{
    struct controller *controller = identity->controller;
    out[0] = (struct csi_service){&csi_v1_identity_service, &identity_handlers, identity};
    out[1] = (struct csi_service){&csi_v1_controller_service, &controller_handlers, controller};
    out[2] = (struct csi_service){&csi_v1_node_service, &node_handlers, controller};
    out[3] = (struct csi_service){&csi_v1_group_controller_service, &group_controller_handlers,
                                  controller};
    out[4] = (struct csi_service){&csi_v1_snapshot_metadata_service, &snapshot_metadata_handlers,
                                  controller};
    out[5] = (struct csi_service){&skycap_v1_operations_service, &operations_handlers, controller};
    out[6] =
        (struct csi_service){&skycap_v1_inventory_service, &inventory_handlers, controller->engine};
    out[7] = (struct csi_service){&skycap_v1_transfer_service, &transfer_handlers, controller};
    out[8] = (struct csi_service){&skycap_v1_mover_service, &mover_handlers, controller};
    out[9] = (struct csi_service){&skycap_v1_replicator_service, &replicator_handlers, controller};
    out[10] =
        (struct csi_service){&skycap_v1_repositories_service, &repositories_handlers, controller};
}

bool
services_is_of(const struct service *service, unsigned sides)
{
    static const char *const of_controller[] = {"csi.v1.Controller", "csi.v1.GroupController",
                                                "csi.v1.SnapshotMetadata"};
    if (service == &skycap_v1_transfer_service || service == &skycap_v1_mover_service ||
        service == &skycap_v1_replicator_service)
        return false; /* for other nodes: the router serves them */
    if (!strcmp(service->name, "csi.v1.Node"))
        return sides & SERVICES_NODE;
    for (size_t i = 0; i < COUNT_OF(of_controller); i++)
        if (!strcmp(service->name, of_controller[i]))
            return sides & SERVICES_CONTROLLER;
    return sides != 0;
}

static const struct csi_service *
find_service(const struct csi_service *services, size_t count, const struct method *method)
{
    size_t size = strcspn(method->path + 1, "/");
    for (size_t i = 0; i < count; i++) {
        const char *name = services[i].service->name;
        if (strlen(name) == size && memcmp(method->path + 1, name, size) == 0)
            return &services[i];
    }
    return NULL;
}

static const struct method *
find_method(const struct service *service, const struct method *like)
{
    for (size_t i = 0; i < service->method_count; i++)
        if (strcmp(service->methods[i].path, like->path) == 0)
            return &service->methods[i];
    return NULL;
}

struct error *
services_run(const struct csi_service *services, size_t count, struct call *call,
             const struct method *method, const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    const struct csi_service *service = find_service(services, count, method);
    const struct method *own = service ? find_method(service->service, method) : NULL;
    if (!own)
        return error_new(CODE_UNIMPLEMENTED, "%s is not implemented", method->path);
    return call_delegate(call, own, service->handlers, service->context, request, reply);
}
