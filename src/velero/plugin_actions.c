/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Velero's item actions, which give a Velero of today progress and cancellation.
 *
 * A backup action takes the snapshot of a PersistentVolume and writes its id into an annotation of
 * the object in the backup. A VolumeSnapshotter that is asked for the same volume in the same
 * backup gets the same snapshot. A restore action lets Velero wait for the data of the new volume,
 * and makes the volume itself if it is gone and there was no VolumeSnapshotter. A delete action
 * deletes the snapshot with the backup.
 */
#include <string.h>
#include <time.h>

#include "message/json_value.h"
#include "message/message_time.h"
#include "velero/persistent_volume.h"
#include "velero/plugin_internal.h"
#include "velero/plugin_work.h"

#define SNAPSHOT_ANNOTATION "velero.skycap.dev/snapshot-id"

/* How much the clocks of Kubernetes and of skycap may differ. */
#define CLOCKS_S 300

struct action {
    struct link *link;
    struct persistent_volume volume;
};

static void
action_clear(struct action *action)
{
    link_release(action->link);
    persistent_volume_clear(&action->volume);
}

static struct error *
action_begin(struct call *call, const char *name, const ProtobufCBinaryData *item,
             struct action *out)
{
    struct error *error = plugin_check_name(name);
    if (!error)
        error = plugin_hold_actions(call_context(call), &out->link);
    return error ? error : persistent_volume_parse(item->data, item->len, &out->volume);
}

static bool
action_is_ours(const struct action *action)
{
    return persistent_volume_is_of(&action->volume, link_settings(action->link)->driver);
}

static ProtobufCBinaryData
action_item(struct call *call, const struct action *action)
{
    ProtobufCBinaryData item;
    item.data = persistent_volume_print(&action->volume, call_arena(call), &item.len);
    return item;
}

/* ---- the objects Backup and Restore ---- */

/* As far as an action wants to know it; texts are in the call's arena. */
struct job {
    const char *name;
    const char *uid;
    int64_t started; /* Unix time; 0: not known */
    bool has_no_volumes;
};

static const char *
copy_text(struct arena *arena, const struct json_value *value)
{
    const char *text = json_value_text(value);
    return text ? arena_string(arena, text) : "";
}

static struct error *
read_job(struct arena *arena, const ProtobufCBinaryData *json, const char *volumes_switch,
         struct job *out)
{
    struct json_value *root AUTO(json_value_cleanup) = NULL;
    struct error *error = json_value_parse(json->data, json->len, &root);
    if (error)
        return error_wrap(error, "the object of the backup or restore");
    const struct json_value *metadata = json_value_member(root, "metadata");
    const char *started =
        json_value_text(json_value_member(json_value_member(root, "status"), "startTimestamp"));
    int32_t nanos;
    *out = (struct job){
        .name = copy_text(arena, json_value_member(metadata, "name")),
        .uid = copy_text(arena, json_value_member(metadata, "uid")),
        .has_no_volumes =
            json_value_is_false(json_value_member(json_value_member(root, "spec"), volumes_switch)),
    };
    if (started && !message_time_parse_timestamp(started, &out->started, &nanos))
        out->started = 0;
    return NULL;
}

/* ---- backup ---- */

static struct error *
backup_applies_to(struct call *call, const Generated__AppliesToRequest *request,
                  Generated__AppliesToResponse *reply)
{
    return PLUGIN_ERROR(plugin_apply_to_volumes(call, request->plugin, reply));
}

static struct error *
take_snapshot(struct call *call, struct action *action, const struct job *backup,
              V2__BackupItemActionExecuteResponse *reply)
{
    const struct work_snapshot wanted = {
        .volume_id = action->volume.handle,
        .backup = backup->name,
        .volume = action->volume.name,
        .not_before = backup->started ? backup->started - CLOCKS_S : 0,
    };
    const char *id;
    struct error *error = work_create_snapshot(action->link, call, &wanted, &id);
    if (!error)
        error = persistent_volume_annotate(&action->volume, SNAPSHOT_ANNOTATION, id);
    if (error)
        return error;
    reply->item = action_item(call, action);
    reply->operationid = (char *)id;
    log_info(plugin_log(call), "took a snapshot", LOG_TEXT("snapshot", id),
             LOG_TEXT("volume", action->volume.handle));
    return NULL;
}

/* What the object has then is of an earlier backup, and must not be deleted with this one. */
static struct error *
take_none(struct call *call, struct action *action, V2__BackupItemActionExecuteResponse *reply)
{
    if (!persistent_volume_annotation(&action->volume, SNAPSHOT_ANNOTATION)[0])
        return NULL;
    struct error *error = persistent_volume_annotate(&action->volume, SNAPSHOT_ANNOTATION, NULL);
    if (!error)
        reply->item = action_item(call, action);
    return error;
}

/* With Velero's own support of CSI, the external snapshotter takes the snapshots. */
static struct error *
backup_execute(struct call *call, const V2__BackupItemActionExecuteRequest *request,
               V2__BackupItemActionExecuteResponse *reply)
{
    const struct plugin *plugin = call_context(call);
    struct action action AUTO(action_clear) = {0};
    struct job backup = {0};
    reply->item = request->item;
    struct error *error = action_begin(call, request->plugin, &request->item, &action);
    if (!error)
        error = read_job(call_arena(call), &request->backup, "snapshotVolumes", &backup);
    if (!error && action_is_ours(&action))
        error = backup.has_no_volumes || plugin->has_csi
                    ? take_none(call, &action, reply)
                    : take_snapshot(call, &action, &backup, reply);
    return PLUGIN_ERROR(error);
}

static struct error *
find_progress(struct call *call, const char *name, const char *id,
              Generated__OperationProgress **out)
{
    struct link *link AUTO(link_cleanup) = NULL;
    struct error *error = plugin_check_name(name);
    if (!error)
        error = plugin_hold_actions(call_context(call), &link);
    if (!error)
        *out = work_progress(link, call, id);
    return error;
}

static struct error *
cancel(struct call *call, const char *name, const char *id)
{
    struct link *link AUTO(link_cleanup) = NULL;
    struct error *error = plugin_check_name(name);
    if (!error)
        error = plugin_hold_actions(call_context(call), &link);
    return error ? error : work_cancel(link, call, id);
}

static struct error *
backup_progress(struct call *call, const V2__BackupItemActionProgressRequest *request,
                V2__BackupItemActionProgressResponse *reply)
{
    return PLUGIN_ERROR(
        find_progress(call, request->plugin, request->operationid, &reply->progress));
}

static struct error *
backup_cancel(struct call *call, const V2__BackupItemActionCancelRequest *request,
              Google__Protobuf__Empty *reply)
{
    (void)reply;
    return PLUGIN_ERROR(cancel(call, request->plugin, request->operationid));
}

const struct v2_backup_item_action plugin_backup_handlers = {
    .applies_to = {backup_applies_to, .on_loop = true},
    .execute = {backup_execute},
    .progress = {backup_progress},
    .cancel = {backup_cancel},
};

/* ---- restore ---- */

static bool
volume_is_gone(struct call *call, struct action *action, struct error **error)
{
    Skycap__V1__VolumeInfo *volume;
    *error = work_find_volume(action->link, call, action->volume.handle, &volume);
    bool is_gone = *error && (*error)->code == CODE_NOT_FOUND;
    *error = error_forgive(*error, CODE_NOT_FOUND);
    return is_gone;
}

/* The same restore of the same object makes the same volume. */
static struct error *
remake_volume(struct call *call, struct action *action, const struct job *restore,
              const char *snapshot_id, V2__RestoreItemActionExecuteResponse *reply)
{
    const char *name =
        work_make_name(call_arena(call), (const char *[]){restore->name, restore->uid,
                                                          action->volume.name, snapshot_id, NULL});
    const char *id;
    struct error *error = work_create_volume(action->link, call, name, snapshot_id, "", &id);
    if (!error)
        error = work_set_volume(action->link, call, id, &action->volume);
    if (error)
        return error;
    reply->operationid = (char *)id;
    log_info(plugin_log(call), "made a volume in the place of one that is gone",
             LOG_TEXT("volume", id), LOG_TEXT("snapshot", snapshot_id));
    return NULL;
}

/* A VolumeSnapshotter has given the object another volume already. */
static bool
was_restored(const struct action *action, const ProtobufCBinaryData *from_backup)
{
    struct persistent_volume before AUTO(persistent_volume_clear) = {0};
    struct error *error AUTO(error_cleanup) =
        persistent_volume_parse(from_backup->data, from_backup->len, &before);
    return !error && strcmp(before.handle, action->volume.handle) != 0;
}

static struct error *
restore_volume(struct call *call, struct action *action,
               const V2__RestoreItemActionExecuteRequest *request, const struct job *restore,
               V2__RestoreItemActionExecuteResponse *reply)
{
    struct arena *arena = call_arena(call);
    const char *snapshot_id =
        arena_string(arena, persistent_volume_annotation(&action->volume, SNAPSHOT_ANNOTATION));
    struct error *error = persistent_volume_annotate(&action->volume, SNAPSHOT_ANNOTATION, NULL);
    if (error)
        return error;
    if (!restore->has_no_volumes && was_restored(action, &request->itemfrombackup))
        reply->operationid = arena_string(arena, action->volume.handle);
    else if (!restore->has_no_volumes && snapshot_id[0] && volume_is_gone(call, action, &error))
        error = remake_volume(call, action, restore, snapshot_id, reply);
    if (!error)
        reply->item = action_item(call, action);
    return error;
}

static struct error *
restore_applies_to(struct call *call, const Generated__AppliesToRequest *request,
                   Generated__AppliesToResponse *reply)
{
    return PLUGIN_ERROR(plugin_apply_to_volumes(call, request->plugin, reply));
}

static struct error *
restore_execute(struct call *call, const V2__RestoreItemActionExecuteRequest *request,
                V2__RestoreItemActionExecuteResponse *reply)
{
    struct action action AUTO(action_clear) = {0};
    struct job restore = {0};
    reply->item = request->item;
    struct error *error = action_begin(call, request->plugin, &request->item, &action);
    if (!error)
        error = read_job(call_arena(call), &request->restore, "restorePVs", &restore);
    if (!error && action_is_ours(&action))
        error = restore_volume(call, &action, request, &restore, reply);
    return PLUGIN_ERROR(error);
}

static struct error *
restore_progress(struct call *call, const V2__RestoreItemActionProgressRequest *request,
                 V2__RestoreItemActionProgressResponse *reply)
{
    return PLUGIN_ERROR(
        find_progress(call, request->plugin, request->operationid, &reply->progress));
}

static struct error *
restore_cancel(struct call *call, const V2__RestoreItemActionCancelRequest *request,
               Google__Protobuf__Empty *reply)
{
    (void)reply;
    return PLUGIN_ERROR(cancel(call, request->plugin, request->operationid));
}

/* There are no additional items. */
static struct error *
restore_items_ready(struct call *call, const V2__RestoreItemActionItemsReadyRequest *request,
                    V2__RestoreItemActionItemsReadyResponse *reply)
{
    (void)call;
    reply->ready = true;
    return PLUGIN_ERROR(plugin_check_name(request->plugin));
}

const struct v2_restore_item_action plugin_restore_handlers = {
    .applies_to = {restore_applies_to, .on_loop = true},
    .execute = {restore_execute},
    .progress = {restore_progress},
    .cancel = {restore_cancel},
    .are_additional_items_ready = {restore_items_ready, .on_loop = true},
};

/* ---- delete ---- */

static struct error *
delete_applies_to(struct call *call, const Generated__AppliesToRequest *request,
                  Generated__AppliesToResponse *reply)
{
    return PLUGIN_ERROR(plugin_apply_to_volumes(call, request->plugin, reply));
}

static struct error *
delete_execute(struct call *call, const Generated__DeleteItemActionExecuteRequest *request,
               Generated__Empty *reply)
{
    (void)reply;
    struct action action AUTO(action_clear) = {0};
    struct error *error = action_begin(call, request->plugin, &request->item, &action);
    if (!error && action_is_ours(&action))
        error = work_delete_snapshot(
            action.link, call, persistent_volume_annotation(&action.volume, SNAPSHOT_ANNOTATION));
    return PLUGIN_ERROR(error);
}

const struct generated_delete_item_action plugin_delete_handlers = {
    .applies_to = {delete_applies_to, .on_loop = true},
    .execute = {delete_execute},
};
