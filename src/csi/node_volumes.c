/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Node: staging and publishing. */
#include <string.h>

#include "csi/checks.h"
#include "csi/ids.h"
#include "csi/node_internal.h"
#include "message/message_map.h"
#include "node/ephemeral.h"
#include "node/publish.h"

#define EPHEMERAL_KEY "csi.storage.k8s.io/ephemeral"

HANDLER(node_stage_volume, NodeStageVolume)
{
    (void)reply;
    struct error *error = checks_stage(request);
    const char *handle;
    if (!error)
        error = ids_find_handle(ID_VOLUME, request->volume_id, &handle);
    if (error)
        return error;
    struct use use = {request->staging_target_path, "", request->volume_capability,
                      capability_is_read_only(request->volume_capability)};
    return stage_volume(controller_engine(call), handle, &use);
}

HANDLER(node_unstage_volume, NodeUnstageVolume)
{
    (void)reply;
    struct error *error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_path("staging_target_path", request->staging_target_path);
    const char *handle = ids_handle(ID_VOLUME, request->volume_id);
    if (error || !handle)
        return error;
    return stage_undo(controller_engine(call), handle, request->staging_target_path);
}

/* ---- publishing ---- */

static bool
is_ephemeral(const struct text_map *context)
{
    const char *value = text_map_find(context, EPHEMERAL_KEY);
    return value && strcmp(value, "true") == 0;
}

static struct error *
publish_named(struct engine *engine, const char *id, const struct use *use)
{
    const char *handle;
    struct error *error = ids_find_handle(ID_VOLUME, id, &handle);
    if (error)
        return error;
    if (!use->staging_path[0])
        return error_new(
            CODE_FAILED_PRECONDITION,
            "staging_target_path is missing: volumes of this node must be staged first");
    return publish_volume(engine, handle, use);
}

HANDLER(node_publish_volume, NodePublishVolume)
{
    (void)reply;
    struct text_map context =
        message_map_read(request->volume_context, request->n_volume_context, call_arena(call));
    struct error *error = checks_publish(request);
    if (error)
        return error;
    struct use use = {request->target_path, request->staging_target_path,
                      request->volume_capability,
                      request->readonly || capability_is_read_only(request->volume_capability)};
    if (!is_ephemeral(&context))
        return publish_named(controller_engine(call), request->volume_id, &use);
    use.staging_path = "";
    struct ephemeral_request wanted = {request->volume_id, context, use};
    return ephemeral_publish(controller_engine(call), &wanted);
}

HANDLER(node_unpublish_volume, NodeUnpublishVolume)
{
    (void)reply;
    struct engine *engine = controller_engine(call);
    struct error *error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_path("target_path", request->target_path);
    if (error)
        return error;
    const char *handle = ids_handle(ID_VOLUME, request->volume_id);
    if (handle)
        return publish_undo(engine, handle, request->target_path);
    error = ephemeral_find(engine, request->volume_id, call_arena(call), &handle);
    if (error)
        return error;
    /* An unknown volume is not published; the path is removed nevertheless. */
    return handle ? ephemeral_remove(engine, handle, request->target_path)
                  : publish_undo(engine, "", request->target_path);
}
