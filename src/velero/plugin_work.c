/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots and volumes: see plugin_work.h. */
#include "velero/plugin_work.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "message/message_map.h"
#include "proto/csi.rpc.h"
#include "proto/inventory.rpc.h"

/*
 * A call that makes a copy answers when the copy is done, or shortly before its deadline. Velero
 * must not wait for that: a pod's hooks may have frozen its file system.
 */
#define ATTEMPT_MS 1500
#define PAUSE_MS 200

#define NAME_PART 48

/* ---- names ---- */

char *
work_make_name(struct arena *arena, const char *const *texts)
{
    struct buffer all AUTO(buffer_clear) = {0};
    for (const char *const *text = texts; *text; text++)
        buffer_append(&all, *text, strlen(*text) + 1);
    return arena_print(arena, "velero-%.*s-%016llx", NAME_PART, texts[0],
                       (unsigned long long)hash_bytes((const char *)all.bytes, all.size));
}

/* ---- repeating ---- */

/* The same request again continues where this one was. */
static bool
is_worth_repeating(const struct error *error)
{
    return error->code == CODE_ABORTED || error->code == CODE_DEADLINE_EXCEEDED ||
           (error->code == CODE_UNAVAILABLE && error->in_doubt);
}

struct patience {
    struct call *call;
    uint64_t end_ms;
};

static struct patience
patience_of(struct link *link, struct call *call)
{
    return (struct patience){call, clock_now_ms() + link_settings(link)->timeout_ms};
}

/* Is there time to ask once more? Pauses before it says so. */
static bool
has_patience(const struct patience *patience)
{
    if (call_is_cancelled(patience->call) || clock_now_ms() + PAUSE_MS >= patience->end_ms)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    return true;
}

static uint64_t
attempt_ms(const struct patience *patience)
{
    uint64_t now = clock_now_ms(), left = patience->end_ms > now ? patience->end_ms - now : 1;
    return left < ATTEMPT_MS ? left : ATTEMPT_MS;
}

/* ---- snapshots ---- */

static struct error *
check_age(const Csi__V1__Snapshot *snapshot, const struct work_snapshot *wanted)
{
    if (!snapshot->creation_time || snapshot->creation_time->seconds >= wanted->not_before)
        return NULL;
    return error_new(CODE_ALREADY_EXISTS,
                     "an earlier backup named \"%s\" left the snapshot %s of this volume: delete "
                     "it, or choose another name for the backup",
                     wanted->backup, snapshot->snapshot_id);
}

struct error *
work_create_snapshot(struct link *link, struct call *call, const struct work_snapshot *wanted,
                     const char **id)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    struct patience patience = patience_of(link, call);
    struct error *error;
    request.source_volume_id = (char *)wanted->volume_id;
    request.name = work_make_name(call_arena(call), (const char *[]){wanted->backup, wanted->volume,
                                                                     wanted->volume_id, NULL});
    for (;;) {
        error = link_ask(link, call, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &request,
                         attempt_ms(&patience), &reply);
        if (!error || !is_worth_repeating(error) || !has_patience(&patience))
            break;
        error_free(error);
    }
    if (!error && !reply->snapshot)
        error = error_new(CODE_INTERNAL, "skycap's answer has no snapshot");
    if (!error)
        error = check_age(reply->snapshot, wanted);
    if (!error)
        *id = reply->snapshot->snapshot_id;
    return error_wrap(error, "snapshot of volume %s", wanted->volume_id);
}

struct error *
work_delete_snapshot(struct link *link, struct call *call, const char *id)
{
    Csi__V1__DeleteSnapshotRequest request = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__DeleteSnapshotResponse *reply;
    if (!id[0])
        return NULL;
    request.snapshot_id = (char *)id;
    struct error *error = link_ask(link, call, CSI_V1_CONTROLLER_DELETE_SNAPSHOT, &request,
                                   link_settings(link)->timeout_ms, &reply);
    return error_wrap(error_forgive(error, CODE_NOT_FOUND), "snapshot %s", id);
}

/* Waits until a volume can be made from it. */
static struct error *
find_ready_snapshot(struct link *link, const struct patience *patience, const char *id,
                    Skycap__V1__SnapshotInfo **out)
{
    Skycap__V1__GetSnapshotRequest request = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetSnapshotResponse *reply;
    request.snapshot = (char *)id;
    do {
        struct error *error = link_ask(link, patience->call, SKYCAP_V1_INVENTORY_GET_SNAPSHOT,
                                       &request, link_settings(link)->timeout_ms, &reply);
        if (error)
            return error;
        *out = reply->snapshot;
        if (!*out || !(*out)->snapshot)
            return error_new(CODE_INTERNAL, "skycap's answer has no snapshot");
        if ((*out)->snapshot->ready_to_use)
            return NULL;
    } while (has_patience(patience));
    return error_new(CODE_FAILED_PRECONDITION, "the data of the snapshot is still being copied");
}

/* ---- volumes ---- */

struct error *
work_find_volume(struct link *link, struct call *call, const char *id, Skycap__V1__VolumeInfo **out)
{
    Skycap__V1__GetVolumeRequest request = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse *reply;
    request.volume = (char *)id;
    struct error *error = link_ask(link, call, SKYCAP_V1_INVENTORY_GET_VOLUME, &request,
                                   link_settings(link)->timeout_ms, &reply);
    if (error)
        return error;
    if (!reply->volume || !reply->volume->volume)
        return error_new(CODE_INTERNAL, "skycap's answer has no volume");
    *out = reply->volume;
    return NULL;
}

/* "directory", "block" or a file system. */
static Csi__V1__VolumeCapability *
make_capability(const char *type, struct arena *arena)
{
    Csi__V1__VolumeCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__volume_capability__init(capability);
    capability->access_mode = arena_alloc(arena, sizeof *capability->access_mode);
    csi__v1__volume_capability__access_mode__init(capability->access_mode);
    capability->access_mode->mode =
        CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    if (strcmp(type, "block") == 0) {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability->block = arena_alloc(arena, sizeof *capability->block);
        csi__v1__volume_capability__block_volume__init(capability->block);
        return capability;
    }
    capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    capability->mount = arena_alloc(arena, sizeof *capability->mount);
    csi__v1__volume_capability__mount_volume__init(capability->mount);
    if (strcmp(type, "directory") != 0)
        capability->mount->fs_type = (char *)type;
    return capability;
}

/* A volume whose data is still on the way is there already, under its name. */
static struct error *
find_begun(struct link *link, struct call *call, struct error *why, const char *name,
           const char **id)
{
    Skycap__V1__VolumeInfo *volume = NULL;
    error_free(work_find_volume(link, call, name, &volume));
    if (!volume)
        return why;
    error_free(why);
    *id = volume->volume->volume_id;
    return NULL;
}

/* Until the volume is known, with or without its data. */
static struct error *
create_volume(struct link *link, const struct patience *patience,
              const Csi__V1__CreateVolumeRequest *request, const char **id)
{
    Csi__V1__CreateVolumeResponse *reply;
    for (;;) {
        struct error *error = link_ask(link, patience->call, CSI_V1_CONTROLLER_CREATE_VOLUME,
                                       request, attempt_ms(patience), &reply);
        if (!error && !reply->volume)
            return error_new(CODE_INTERNAL, "skycap's answer has no volume");
        if (!error) {
            *id = reply->volume->volume_id;
            return NULL;
        }
        if (!is_worth_repeating(error))
            return error;
        error = find_begun(link, patience->call, error, request->name, id);
        if (!error || !has_patience(patience))
            return error;
        error_free(error);
    }
}

struct error *
work_create_volume(struct link *link, struct call *call, const char *name, const char *snapshot_id,
                   const char *type, const char **id)
{
    struct patience patience = patience_of(link, call);
    Skycap__V1__SnapshotInfo *from;
    struct error *error = find_ready_snapshot(link, &patience, snapshot_id, &from);
    if (error)
        return error_wrap(error, "snapshot %s", snapshot_id);
    Csi__V1__VolumeContentSource__SnapshotSource snapshot =
        CSI__V1__VOLUME_CONTENT_SOURCE__SNAPSHOT_SOURCE__INIT;
    Csi__V1__VolumeContentSource source = CSI__V1__VOLUME_CONTENT_SOURCE__INIT;
    Csi__V1__CapacityRange size = CSI__V1__CAPACITY_RANGE__INIT;
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    snapshot.snapshot_id = (char *)snapshot_id;
    source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
    source.snapshot = &snapshot;
    size.required_bytes = from->snapshot->size_bytes;
    request.name = (char *)name;
    request.volume_content_source = &source;
    request.capacity_range = size.required_bytes ? &size : NULL;
    request.volume_capabilities = (Csi__V1__VolumeCapability *[]){
        make_capability(from->type[0] ? from->type : type, call_arena(call))};
    request.n_volume_capabilities = 1;
    return error_wrap(create_volume(link, &patience, &request, id), "volume from snapshot %s",
                      snapshot_id);
}

struct error *
work_set_volume(struct link *link, struct call *call, const char *id,
                struct persistent_volume *object)
{
    struct arena *arena = call_arena(call);
    Skycap__V1__VolumeInfo *info;
    struct error *error = work_find_volume(link, call, id, &info);
    if (error)
        return error;
    size_t count = info->volume->n_accessible_topology;
    struct text_map *segments = arena_alloc(arena, (count + 1) * sizeof *segments);
    for (size_t i = 0; i < count; i++) {
        const Csi__V1__Topology *topology = info->volume->accessible_topology[i];
        segments[i] = message_map_read(topology->segments, topology->n_segments, arena);
    }
    error = persistent_volume_set_nodes(object, segments, count);
    return error ? error : persistent_volume_set_handle(object, id);
}
