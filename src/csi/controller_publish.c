/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller: attaching volumes, to this node only. */
#include <string.h>

#include "csi/checks.h"
#include "csi/controller_internal.h"
#include "csi/ids.h"
#include "volumes/volume.h"

static struct error *
check_node(const struct engine *engine, const char *node_id)
{
    if (strcmp(node_id, engine->node_id) == 0)
        return NULL;
    return error_new(CODE_NOT_FOUND, "there is no node \"%s\"; this one is \"%s\"", node_id,
                     engine->node_id);
}

HANDLER(controller_publish_volume, ControllerPublishVolume)
{
    (void)reply;
    struct controller *controller = call_context(call);
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_node_id("node_id", request->node_id);
    if (!error)
        error = checks_capability(request->volume_capability);
    const char *handle = NULL;
    if (!error)
        error = ids_find_handle(ID_VOLUME, request->volume_id, &handle);
    volume_record *volume;
    if (!error) /* before the volume, which may have moved: no node has this one */
        error = check_node(controller->engine, request->node_id);
    if (!error)
        error = volume_get(controller->engine, handle, call_arena(call), &volume);
    return error ? error
                 : volume_attach(controller->engine, handle, request->node_id, request->readonly,
                                 request->volume_capability, controller->max_volumes_per_node);
}

/* Unknown volumes and nodes count as detached. */
HANDLER(controller_unpublish_volume, ControllerUnpublishVolume)
{
    (void)reply;
    struct controller *controller = call_context(call);
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    const char *handle = ids_handle(ID_VOLUME, request->volume_id);
    if (error || !handle)
        return error;
    error = volume_detach(controller->engine, handle, request->node_id);
    return error_forgive(error, CODE_NOT_FOUND);
}
