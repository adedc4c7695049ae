/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes at paths of this node: see attach.h. */
#include "connections/copy/attach.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "connections/forward/forward.h"
#include "connections/forward/list_end.h"
#include "connections/request/global_id.h"
#include "connections/request/map_field.h"
#include "message/message_map.h"

/* NOLINTBEGIN(bugprone-macro-parentheses) a declared name cannot stand in parentheses */
#define REQUEST(Type, prefix, name)                                                                \
    Csi__V1__##Type##Request name;                                                                 \
    csi__v1__##prefix##_request__init(&name)
/* NOLINTEND(bugprone-macro-parentheses) */

static bool
needs(const struct attachment *a, const char *path)
{
    struct error *error;
    bool possible = rules_is_supported(rules_find(path), a->connection, &error);
    error_free(error);
    return possible;
}

static struct error *
call_driver(const struct attachment *a, const char *path, ProtobufCMessage *request,
            ProtobufCMessage *reply)
{
    struct map_field field;
    if (map_field_find(request, "secrets", &field))
        map_field_write(&field, a->secrets, call_arena(a->call));
    if (map_field_find(request, "volume_context", &field)) {
        struct text_map context = message_map_read(
            a->volume->volume_context, a->volume->n_volume_context, call_arena(a->call));
        map_field_write(&field, &context, call_arena(a->call));
    }
    const struct method *method = service_find_method(path);
    return error_wrap(
        forward_call(a->router, a->set, a->connection, a->call, method, request, reply),
        "%s of \"%s\"", method->name, a->volume->volume_id);
}

static const char *
path_of(const struct attachment *a, const char *name)
{
    return arena_print(call_arena(a->call), "%s/%s", a->directory, name);
}

/* ---- attaching ---- */

static struct error *
publish_by_controller(const struct attachment *a, struct text_map *publish_context)
{
    static const char path[] = "/csi.v1.Controller/ControllerPublishVolume";
    *publish_context = (struct text_map){0};
    if (!needs(a, path))
        return NULL;
    REQUEST(ControllerPublishVolume, controller_publish_volume, request);
    Csi__V1__ControllerPublishVolumeResponse reply =
        CSI__V1__CONTROLLER_PUBLISH_VOLUME_RESPONSE__INIT;
    request.volume_id = a->volume->volume_id;
    request.node_id = (char *)a->router->node_id;
    request.volume_capability = (Csi__V1__VolumeCapability *)a->capability;
    request.readonly = a->read_only;
    struct error *error = call_driver(a, path, &request.base, &reply.base);
    if (!error)
        *publish_context =
            message_map_read(reply.publish_context, reply.n_publish_context, call_arena(a->call));
    return error;
}

static struct error *
stage(const struct attachment *a, const struct text_map *publish_context, const char **staged)
{
    static const char path[] = "/csi.v1.Node/NodeStageVolume";
    struct map_field field;
    *staged = "";
    if (!needs(a, path))
        return NULL;
    REQUEST(NodeStageVolume, node_stage_volume, request);
    Csi__V1__NodeStageVolumeResponse reply = CSI__V1__NODE_STAGE_VOLUME_RESPONSE__INIT;
    *staged = path_of(a, "stage");
    struct error *error = files_make_path(*staged);
    if (error)
        return error;
    request.volume_id = a->volume->volume_id;
    request.staging_target_path = (char *)*staged;
    request.volume_capability = (Csi__V1__VolumeCapability *)a->capability;
    map_field_find(&request.base, "publish_context", &field);
    map_field_write(&field, publish_context, call_arena(a->call));
    return call_driver(a, path, &request.base, &reply.base);
}

static struct error *
publish(const struct attachment *a, const struct text_map *publish_context, const char *staged,
        const char *target)
{
    struct map_field field;
    REQUEST(NodePublishVolume, node_publish_volume, request);
    Csi__V1__NodePublishVolumeResponse reply = CSI__V1__NODE_PUBLISH_VOLUME_RESPONSE__INIT;
    request.volume_id = a->volume->volume_id;
    request.staging_target_path = (char *)staged;
    request.target_path = (char *)target;
    request.volume_capability = (Csi__V1__VolumeCapability *)a->capability;
    request.readonly = a->read_only;
    map_field_find(&request.base, "publish_context", &field);
    map_field_write(&field, publish_context, call_arena(a->call));
    return call_driver(a, "/csi.v1.Node/NodePublishVolume", &request.base, &reply.base);
}

struct error *
attach_volume(const struct attachment *a, const char **path)
{
    struct text_map publish_context;
    const char *staged;
    *path = path_of(a, "target");
    struct error *error = files_make_path(a->directory);
    if (!error)
        error = publish_by_controller(a, &publish_context);
    if (!error)
        error = stage(a, &publish_context, &staged);
    if (!error)
        error = publish(a, &publish_context, staged, *path);
    return error;
}

/* ---- what the driver tells of it ---- */

static void
read_nodes(const struct attachment *a, char *const *node_ids, size_t count,
           struct attach_facts *out)
{
    if (!CONNECTION_CAN(a->connection, PUBLISH_UNPUBLISH_VOLUME) ||
        !CONNECTION_CAN(a->connection, LIST_VOLUMES_PUBLISHED_NODES))
        return;
    out->state = count ? ATTACH_STATE_ELSEWHERE : ATTACH_STATE_DETACHED;
    for (size_t i = 0; i < count; i++)
        if (strcmp(node_ids[i], a->router->node_id) == 0)
            out->state = ATTACH_STATE_ATTACHED;
}

static struct error *
ask_for_facts(const struct attachment *a, struct attach_facts *out)
{
    REQUEST(ControllerGetVolume, controller_get_volume, request);
    Csi__V1__ControllerGetVolumeResponse reply = CSI__V1__CONTROLLER_GET_VOLUME_RESPONSE__INIT;
    request.volume_id = a->volume->volume_id;
    struct error *error =
        call_driver(a, "/csi.v1.Controller/ControllerGetVolume", &request.base, &reply.base);
    if (error)
        return error;
    if (reply.status)
        read_nodes(a, reply.status->published_node_ids, reply.status->n_published_node_ids, out);
    out->size_bytes = reply.volume ? reply.volume->capacity_bytes : 0;
    return NULL;
}

/* Lists use the connection's current name; the volume's id may have an older one. */
static bool
is_same(const struct attachment *a, const char *id)
{
    struct global_id one, other;
    return global_id_parse(ID_VOLUME, id, &one) &&
           global_id_parse(ID_VOLUME, a->volume->volume_id, &other) &&
           strcmp(one.handle, other.handle) == 0;
}

/* Is the volume there? */
static bool
look_at_page(const struct attachment *a, const Csi__V1__ListVolumesResponse *page,
             struct attach_facts *out)
{
    for (size_t i = 0; i < page->n_entries; i++) {
        const Csi__V1__ListVolumesResponse__Entry *entry = page->entries[i];
        if (!entry->volume || !is_same(a, entry->volume->volume_id))
            continue;
        if (entry->status)
            read_nodes(a, entry->status->published_node_ids, entry->status->n_published_node_ids,
                       out);
        out->size_bytes = entry->volume->capacity_bytes;
        return true;
    }
    return false;
}

/* `*token` becomes that of the next page; NULL: the volume was found, or this was the last page. */
static struct error *
read_page(const struct attachment *a, char **token, struct attach_facts *out)
{
    REQUEST(ListVolumes, list_volumes, request);
    Csi__V1__ListVolumesResponse page = CSI__V1__LIST_VOLUMES_RESPONSE__INIT;
    request.starting_token = *token;
    struct error *error =
        call_driver(a, "/csi.v1.Controller/ListVolumes", &request.base, &page.base);
    if (error)
        return error;
    bool is_last = look_at_page(a, &page, out) || !page.next_token[0];
    free(*token);
    *token = is_last ? NULL : memory_string(page.next_token);
    return NULL;
}

static struct error *
look_for_facts(const struct attachment *a, struct attach_facts *out)
{
    char *token AUTO(memory_cleanup) = memory_string("");
    struct list_end end;
    struct error *error = NULL;
    list_end_init(&end, a->connection->spec->name, token);
    while (!error && token) {
        struct attachment one = *a; /* the arena of its call holds the page */
        one.call = call_new_part(a->call, 0);
        error = read_page(&one, &token, out);
        call_free_detached(one.call);
        if (!error && token)
            error = list_end_check(&end, token);
        if (!error && call_is_cancelled(a->call))
            error = error_new(CODE_CANCELLED, "the caller has gone");
    }
    return error;
}

struct error *
attach_find_facts(const struct attachment *a, struct attach_facts *out)
{
    bool attaches = CONNECTION_CAN(a->connection, PUBLISH_UNPUBLISH_VOLUME);
    *out = (struct attach_facts){attaches ? ATTACH_STATE_UNKNOWN : ATTACH_STATE_NEVER, 0};
    struct error *error = NULL;
    if (CONNECTION_CAN(a->connection, GET_VOLUME))
        error = ask_for_facts(a, out);
    else if (CONNECTION_CAN(a->connection, LIST_VOLUMES))
        error = look_for_facts(a, out);
    return error_forgive(error, CODE_INVALID_ARGUMENT); /* it claims a method that it lacks */
}

/* ---- detaching ---- */

static bool
exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static struct error *
unpublish(const struct attachment *a)
{
    REQUEST(NodeUnpublishVolume, node_unpublish_volume, request);
    Csi__V1__NodeUnpublishVolumeResponse reply = CSI__V1__NODE_UNPUBLISH_VOLUME_RESPONSE__INIT;
    request.volume_id = a->volume->volume_id;
    request.target_path = (char *)path_of(a, "target");
    if (!exists(request.target_path))
        return NULL;
    return call_driver(a, "/csi.v1.Node/NodeUnpublishVolume", &request.base, &reply.base);
}

static struct error *
unstage(const struct attachment *a)
{
    static const char path[] = "/csi.v1.Node/NodeUnstageVolume";
    REQUEST(NodeUnstageVolume, node_unstage_volume, request);
    Csi__V1__NodeUnstageVolumeResponse reply = CSI__V1__NODE_UNSTAGE_VOLUME_RESPONSE__INIT;
    request.volume_id = a->volume->volume_id;
    request.staging_target_path = (char *)path_of(a, "stage");
    if (!needs(a, path) || !exists(request.staging_target_path))
        return NULL;
    struct error *error = call_driver(a, path, &request.base, &reply.base);
    if (!error)
        rmdir(request.staging_target_path);
    return error;
}

static struct error *
unpublish_by_controller(const struct attachment *a)
{
    static const char path[] = "/csi.v1.Controller/ControllerUnpublishVolume";
    REQUEST(ControllerUnpublishVolume, controller_unpublish_volume, request);
    Csi__V1__ControllerUnpublishVolumeResponse reply =
        CSI__V1__CONTROLLER_UNPUBLISH_VOLUME_RESPONSE__INIT;
    request.volume_id = a->volume->volume_id;
    request.node_id = (char *)a->router->node_id;
    return !a->stays && needs(a, path) ? call_driver(a, path, &request.base, &reply.base) : NULL;
}

/* A volume that does not exist is attached nowhere. */
struct error *
attach_detach(const struct attachment *a)
{
    struct error *error = error_forgive(unpublish(a), CODE_NOT_FOUND);
    if (!error)
        error = error_forgive(unstage(a), CODE_NOT_FOUND);
    if (!error)
        error = error_forgive(unpublish_by_controller(a), CODE_NOT_FOUND);
    if (!error)
        rmdir(a->directory);
    return error;
}
