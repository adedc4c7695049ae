/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Velero's VolumeSnapshotter, first version and second. Every call may reach a new process: only
 * Init leaves something behind, and Velero repeats Init for each process.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "message/message_map.h"
#include "velero/persistent_volume.h"
#include "velero/plugin_internal.h"
#include "velero/plugin_work.h"
#include "velero/velero.h"

/*
 * Velero does not tell a snapshotter when the backup began. A snapshot of the same name that is
 * older than this is of an earlier backup, not of a repeated request.
 */
#define REPEAT_S (24 * 60 * 60)

static struct error *
hold_for(struct call *call, const char *name, struct link **link)
{
    struct error *error = plugin_check_name(name);
    return error ? error : plugin_hold_location(call_context(call), link);
}

static struct error *
init(struct call *call, const Generated__VolumeSnapshotterInitRequest *request,
     Generated__Empty *reply)
{
    (void)reply;
    struct text_map config = message_map_read(request->config, request->n_config, call_arena(call));
    struct plugin_settings settings;
    struct error *error = plugin_check_name(request->plugin);
    if (!error)
        error = plugin_settings_read(&config, call_arena(call), &settings);
    if (!error)
        error = plugin_set_location(call_context(call), &settings);
    return PLUGIN_ERROR(error);
}

/* ---- volumes ---- */

static struct error *
hold_with_object(struct call *call, const char *name, const ProtobufCBinaryData *json,
                 struct link **link, struct persistent_volume *object)
{
    struct error *error = hold_for(call, name, link);
    return error ? error : persistent_volume_parse(json->data, json->len, object);
}

static struct error *
get_volume_id(struct call *call, const Generated__GetVolumeIDRequest *request,
              Generated__GetVolumeIDResponse *reply)
{
    struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
    struct link *link AUTO(link_cleanup) = NULL;
    struct error *error =
        hold_with_object(call, request->plugin, &request->persistentvolume, &link, &volume);
    if (!error && persistent_volume_is_of(&volume, link_settings(link)->driver))
        reply->volumeid = arena_string(call_arena(call), volume.handle);
    return PLUGIN_ERROR(error);
}

static struct error *
set_volume_id(struct call *call, const Generated__SetVolumeIDRequest *request,
              Generated__SetVolumeIDResponse *reply)
{
    struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
    struct link *link AUTO(link_cleanup) = NULL;
    struct error *error =
        hold_with_object(call, request->plugin, &request->persistentvolume, &link, &volume);
    if (!error && !persistent_volume_is_of(&volume, link_settings(link)->driver))
        error = error_new(CODE_INVALID_ARGUMENT,
                          "the PersistentVolume \"%.253s\" is no volume of the CSI driver %s",
                          volume.name, link_settings(link)->driver);
    if (!error)
        error = work_set_volume(link, call, request->volumeid, &volume);
    if (!error)
        reply->persistentvolume.data =
            persistent_volume_print(&volume, call_arena(call), &reply->persistentvolume.len);
    return PLUGIN_ERROR(error);
}

static struct error *
get_volume_info(struct call *call, const Generated__GetVolumeInfoRequest *request,
                Generated__GetVolumeInfoResponse *reply)
{
    struct link *link AUTO(link_cleanup) = NULL;
    Skycap__V1__VolumeInfo *volume;
    struct error *error = hold_for(call, request->plugin, &link);
    if (!error)
        error = work_find_volume(link, call, request->volumeid, &volume);
    if (!error)
        reply->volumetype = volume->type;
    return PLUGIN_ERROR(error);
}

/* Two restores from one snapshot are two volumes, and nothing tells them apart but chance. */
static struct error *
new_volume_name(struct arena *arena, char **out)
{
    unsigned long long number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_from_errno(errno, "random numbers");
    *out = arena_print(arena, "velero-restore-%016llx", number);
    return NULL;
}

static struct error *
create_volume(struct call *call, const Generated__CreateVolumeRequest *request,
              Generated__CreateVolumeResponse *reply)
{
    struct link *link AUTO(link_cleanup) = NULL;
    char *name;
    const char *id;
    struct error *error = hold_for(call, request->plugin, &link);
    if (!error)
        error = new_volume_name(call_arena(call), &name);
    if (!error)
        error = work_create_volume(link, call, name, request->snapshotid, request->volumetype, &id);
    if (error)
        return PLUGIN_ERROR(error);
    reply->volumeid = (char *)id;
    log_info(plugin_log(call), "made a volume", LOG_TEXT("volume", id),
             LOG_TEXT("snapshot", request->snapshotid));
    return NULL;
}

/* ---- snapshots ---- */

static const char *
tag_of(const struct text_map *tags, const char *name)
{
    const char *tag = text_map_find(tags, name);
    return tag ? tag : "";
}

static struct error *
create_snapshot(struct call *call, const Generated__CreateSnapshotRequest *request,
                Generated__CreateSnapshotResponse *reply)
{
    struct text_map tags = message_map_read(request->tags, request->n_tags, call_arena(call));
    const struct work_snapshot wanted = {
        .volume_id = request->volumeid,
        .backup = tag_of(&tags, VELERO_TAG_BACKUP),
        .volume = tag_of(&tags, VELERO_TAG_VOLUME),
        .not_before = time(NULL) - REPEAT_S,
    };
    struct link *link AUTO(link_cleanup) = NULL;
    const char *id;
    struct error *error = hold_for(call, request->plugin, &link);
    if (!error && !wanted.backup[0])
        error = error_new(CODE_INVALID_ARGUMENT, "the tag %s is missing", VELERO_TAG_BACKUP);
    if (!error)
        error = work_create_snapshot(link, call, &wanted, &id);
    if (error)
        return PLUGIN_ERROR(error);
    reply->snapshotid = (char *)id;
    log_info(plugin_log(call), "took a snapshot", LOG_TEXT("snapshot", id),
             LOG_TEXT("volume", wanted.volume_id));
    return NULL;
}

static struct error *
delete_snapshot(struct call *call, const Generated__DeleteSnapshotRequest *request,
                Generated__Empty *reply)
{
    (void)reply;
    struct link *link AUTO(link_cleanup) = NULL;
    struct error *error = hold_for(call, request->plugin, &link);
    if (!error)
        error = work_delete_snapshot(link, call, request->snapshotid);
    return PLUGIN_ERROR(error);
}

/* ---- what the second version adds ---- */

static struct error *
get_progress(struct call *call, const V2__VolumeSnapshotterProgressRequest *request,
             V2__VolumeSnapshotterProgressResponse *reply)
{
    struct link *link AUTO(link_cleanup) = NULL;
    struct error *error = hold_for(call, request->plugin, &link);
    if (!error)
        reply->progress = work_progress(link, call, request->snapshotid);
    return PLUGIN_ERROR(error);
}

static struct error *
cancel(struct call *call, const V2__VolumeSnapshotterCancelRequest *request,
       Google__Protobuf__Empty *reply)
{
    (void)reply;
    struct link *link AUTO(link_cleanup) = NULL;
    struct error *error = hold_for(call, request->plugin, &link);
    if (!error)
        error = work_cancel(link, call, request->operationid);
    return PLUGIN_ERROR(error);
}

const struct generated_volume_snapshotter plugin_snapshotter_handlers = {
    .init = {init},
    .create_volume_from_snapshot = {create_volume},
    .get_volume_info = {get_volume_info},
    .create_snapshot = {create_snapshot},
    .delete_snapshot = {delete_snapshot},
    .get_volume_id = {get_volume_id},
    .set_volume_id = {set_volume_id},
};

const struct v2_volume_snapshotter plugin_snapshotter_v2_handlers = {
    .init = {init},
    .create_volume_from_snapshot = {create_volume},
    .get_volume_info = {get_volume_info},
    .create_snapshot = {create_snapshot},
    .delete_snapshot = {delete_snapshot},
    .get_volume_id = {get_volume_id},
    .set_volume_id = {set_volume_id},
    .progress = {get_progress},
    .cancel = {cancel},
};
