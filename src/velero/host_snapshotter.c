/* SPDX-License-Identifier: Apache-2.0 */
/* A volume snapshotter in a plugin: see host_snapshotter.h. */
#include "velero/host_snapshotter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "google/protobuf/empty.pb-c.h"
#include "message/message_map.h"
#include "proto/velero_v2.pb-c.h"
#include "velero/host_adapter.h"

#define MAX_FAILED_STARTS 10
#define FIRST_PAUSE_MS 100
#define LONGEST_PAUSE_MS 5000
#define SHORT_CALL_MS 30000 /* for Progress and Cancel, which only look and ask */
#define MAX_ID_BYTES 4096

struct host_snapshotter {
    struct host *host;
    const struct host_plugin *plugin;
    const struct text_map *config;
    bool is_adapted;
    struct host_process *process; /* NULL: it must be started */
    unsigned starts;
    unsigned failed_starts; /* in a row */
};

/* ---- calls ---- */

/* Both versions have the same messages for the calls that both have. */
static const struct method *
find_method(const struct host_snapshotter *snapshotter, const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "%s.VolumeSnapshotter/%s",
             snapshotter->is_adapted ? "generated" : "v2", name);
    return service_find_method(full);
}

static struct error *
call_process(struct host_snapshotter *snapshotter, const char *method, uint32_t timeout_ms,
             const void *request, struct arena *arena, void *reply)
{
    struct call_options options = {.timeout_ns = timeout_ms * UINT64_C(1000000)};
    struct error *error =
        channel_call(host_process_channel(snapshotter->process), find_method(snapshotter, method),
                     request, &options, arena, reply);
    return host_process_judge(snapshotter->process, error_wrap(error, "%s", method));
}

static struct error *
init(struct host_snapshotter *snapshotter)
{
    Generated__VolumeSnapshotterInitRequest request =
        GENERATED__VOLUME_SNAPSHOTTER_INIT_REQUEST__INIT;
    Generated__Empty *reply;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    request.plugin = (char *)snapshotter->plugin->name;
    message_map_write(snapshotter->config, &arena,
                      &generated__volume_snapshotter_init_request__config_entry__descriptor,
                      &request.config, &request.n_config);
    return call_process(snapshotter, "Init", host_get_options(snapshotter->host)->call_timeout_ms,
                        &request, &arena, &reply);
}

/* ---- starting ---- */

static struct error *
start(struct host_snapshotter *snapshotter)
{
    snapshotter->starts++;
    struct error *error =
        host_start(snapshotter->host, snapshotter->plugin->binary, &snapshotter->process);
    if (!error)
        error = host_process_wait(snapshotter->process);
    if (!error)
        error = init(snapshotter);
    if (error) {
        host_process_close(snapshotter->process);
        snapshotter->process = NULL;
    }
    return error;
}

static void
pause_before_start(const struct host_snapshotter *snapshotter)
{
    if (!snapshotter->failed_starts)
        return;
    long ms = FIRST_PAUSE_MS << (snapshotter->failed_starts - 1);
    if (ms > LONGEST_PAUSE_MS)
        ms = LONGEST_PAUSE_MS;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static struct error *
start_again(struct host_snapshotter *snapshotter)
{
    const struct host_options *options = host_get_options(snapshotter->host);
    host_process_close(snapshotter->process);
    snapshotter->process = NULL;
    if (snapshotter->failed_starts >= MAX_FAILED_STARTS)
        return error_new(CODE_FAILED_PRECONDITION,
                         "plugin %s could not be started %d times in a row",
                         snapshotter->plugin->binary->name, MAX_FAILED_STARTS);
    pause_before_start(snapshotter);
    struct error *error = start(snapshotter);
    snapshotter->failed_starts = error ? snapshotter->failed_starts + 1 : 0;
    if (!error && snapshotter->starts > 1)
        log_warn(options->log, "plugin was started again",
                 LOG_TEXT("plugin", snapshotter->plugin->binary->name));
    return error;
}

static struct error *
call_within(struct host_snapshotter *snapshotter, const char *method, uint32_t timeout_ms,
            const void *request, struct arena *arena, void *reply)
{
    struct error *error = NULL;
    if (!snapshotter->process || host_process_is_lost(snapshotter->process))
        error = start_again(snapshotter);
    if (error)
        return error;
    return call_process(snapshotter, method, timeout_ms, request, arena, reply);
}

static struct error *
call(struct host_snapshotter *snapshotter, const char *method, const void *request,
     struct arena *arena, void *reply)
{
    uint32_t timeout_ms = host_get_options(snapshotter->host)->call_timeout_ms;
    return call_within(snapshotter, method, timeout_ms, request, arena, reply);
}

static struct error *
call_briefly(struct host_snapshotter *snapshotter, const char *method, const void *request,
             struct arena *arena, void *reply)
{
    uint32_t timeout_ms = host_get_options(snapshotter->host)->call_timeout_ms;
    return call_within(snapshotter, method, timeout_ms < SHORT_CALL_MS ? timeout_ms : SHORT_CALL_MS,
                       request, arena, reply);
}

/* ---- life ---- */

struct error *
host_snapshotter_open(struct host *host, const struct host_plugin *plugin,
                      const struct text_map *config, struct host_snapshotter **out)
{
    struct host_snapshotter *snapshotter = memory_zeroed(sizeof *snapshotter);
    snapshotter->host = host;
    snapshotter->plugin = plugin;
    snapshotter->config = config;
    snapshotter->is_adapted = plugin->known_as == HOST_KIND_SNAPSHOTTER;
    struct error *error = start(snapshotter);
    if (error)
        host_snapshotter_close(snapshotter);
    else
        *out = snapshotter;
    return error;
}

void
host_snapshotter_close(struct host_snapshotter *snapshotter)
{
    if (!snapshotter)
        return;
    host_process_close(snapshotter->process);
    free(snapshotter);
}

bool
host_snapshotter_is_adapted(const struct host_snapshotter *snapshotter)
{
    return snapshotter->is_adapted;
}

unsigned
host_snapshotter_starts(const struct host_snapshotter *snapshotter)
{
    return snapshotter->starts;
}

/* ---- the calls of both versions ---- */

static ProtobufCBinaryData
bytes_of(const char *text)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)text, .len = strlen(text)};
}

static struct error *
check_id(const struct host_snapshotter *snapshotter, const char *what, const char *id)
{
    const char *plugin = snapshotter->plugin->name;
    if (!id[0])
        return error_new(CODE_INTERNAL, "plugin %s answered with an empty %s id", plugin, what);
    if (strlen(id) > MAX_ID_BYTES)
        return error_new(CODE_INTERNAL, "plugin %s answered with a %s id of %zu bytes", plugin,
                         what, strlen(id));
    return NULL;
}

struct error *
host_snapshotter_get_volume_id(struct host_snapshotter *snapshotter, const char *volume,
                               struct arena *arena, const char **id)
{
    Generated__GetVolumeIDRequest request = GENERATED__GET_VOLUME_IDREQUEST__INIT;
    Generated__GetVolumeIDResponse *reply;
    request.plugin = (char *)snapshotter->plugin->name;
    request.persistentvolume = bytes_of(volume);
    struct error *error = call(snapshotter, "GetVolumeID", &request, arena, &reply);
    if (!error && reply->volumeid[0])
        error = check_id(snapshotter, "volume", reply->volumeid);
    if (!error)
        *id = reply->volumeid;
    return error;
}

struct error *
host_snapshotter_get_volume_info(struct host_snapshotter *snapshotter, struct host_volume *volume,
                                 struct arena *arena)
{
    Generated__GetVolumeInfoRequest request = GENERATED__GET_VOLUME_INFO_REQUEST__INIT;
    Generated__GetVolumeInfoResponse *reply;
    request.plugin = (char *)snapshotter->plugin->name;
    request.volumeid = (char *)volume->id;
    request.volumeaz = (char *)volume->zone;
    struct error *error = call(snapshotter, "GetVolumeInfo", &request, arena, &reply);
    if (!error) {
        volume->type = reply->volumetype;
        volume->iops = reply->iops;
    }
    return error;
}

struct error *
host_snapshotter_create(struct host_snapshotter *snapshotter, const struct host_volume *volume,
                        const struct text_map *tags, struct arena *arena, const char **snapshot)
{
    Generated__CreateSnapshotRequest request = GENERATED__CREATE_SNAPSHOT_REQUEST__INIT;
    Generated__CreateSnapshotResponse *reply;
    request.plugin = (char *)snapshotter->plugin->name;
    request.volumeid = (char *)volume->id;
    request.volumeaz = (char *)volume->zone;
    message_map_write(tags, arena, &generated__create_snapshot_request__tags_entry__descriptor,
                      &request.tags, &request.n_tags);
    struct error *error = call(snapshotter, "CreateSnapshot", &request, arena, &reply);
    if (!error)
        error = check_id(snapshotter, "snapshot", reply->snapshotid);
    if (!error)
        *snapshot = reply->snapshotid;
    return error;
}

struct error *
host_snapshotter_delete(struct host_snapshotter *snapshotter, const char *snapshot)
{
    Generated__DeleteSnapshotRequest request = GENERATED__DELETE_SNAPSHOT_REQUEST__INIT;
    Generated__Empty *reply;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    request.plugin = (char *)snapshotter->plugin->name;
    request.snapshotid = (char *)snapshot;
    return call(snapshotter, "DeleteSnapshot", &request, &arena, &reply);
}

struct error *
host_snapshotter_create_volume(struct host_snapshotter *snapshotter, const char *snapshot,
                               struct host_volume *volume, struct arena *arena)
{
    Generated__CreateVolumeRequest request = GENERATED__CREATE_VOLUME_REQUEST__INIT;
    Generated__CreateVolumeResponse *reply;
    request.plugin = (char *)snapshotter->plugin->name;
    request.snapshotid = (char *)snapshot;
    request.volumetype = (char *)volume->type;
    request.volumeaz = (char *)volume->zone;
    request.iops = volume->iops;
    struct error *error = call(snapshotter, "CreateVolumeFromSnapshot", &request, arena, &reply);
    if (!error)
        error = check_id(snapshotter, "volume", reply->volumeid);
    if (!error)
        volume->id = reply->volumeid;
    return error;
}

struct error *
host_snapshotter_set_volume_id(struct host_snapshotter *snapshotter, const char *volume,
                               const char *id, struct arena *arena, const char **out)
{
    Generated__SetVolumeIDRequest request = GENERATED__SET_VOLUME_IDREQUEST__INIT;
    Generated__SetVolumeIDResponse *reply;
    request.plugin = (char *)snapshotter->plugin->name;
    request.persistentvolume = bytes_of(volume);
    request.volumeid = (char *)id;
    struct error *error = call(snapshotter, "SetVolumeID", &request, arena, &reply);
    if (error)
        return error;
    const ProtobufCBinaryData *changed = &reply->persistentvolume;
    if (!changed->len || memchr(changed->data, '\0', changed->len))
        return error_new(CODE_INTERNAL, "plugin %s answered with no PersistentVolume",
                         snapshotter->plugin->name);
    *out = arena_copy(arena, changed->data, changed->len);
    return NULL;
}

/* ---- those of version 2 ---- */

struct error *
host_snapshotter_progress(struct host_snapshotter *snapshotter, const char *snapshot,
                          struct arena *arena, Generated__OperationProgress **out)
{
    V2__VolumeSnapshotterProgressRequest request = V2__VOLUME_SNAPSHOTTER_PROGRESS_REQUEST__INIT;
    V2__VolumeSnapshotterProgressResponse *reply;
    if (snapshotter->is_adapted) {
        *out = host_adapter_progress(arena);
        return NULL;
    }
    request.plugin = (char *)snapshotter->plugin->name;
    request.snapshotid = (char *)snapshot;
    struct error *error = call_briefly(snapshotter, "Progress", &request, arena, &reply);
    if (!error && !reply->progress)
        error = error_new(CODE_INTERNAL, "plugin %s answered Progress without a progress",
                          snapshotter->plugin->name);
    if (!error)
        *out = reply->progress;
    return error;
}

struct error *
host_snapshotter_cancel(struct host_snapshotter *snapshotter, const char *snapshot)
{
    V2__VolumeSnapshotterCancelRequest request = V2__VOLUME_SNAPSHOTTER_CANCEL_REQUEST__INIT;
    Google__Protobuf__Empty *reply;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (snapshotter->is_adapted)
        return NULL;
    request.plugin = (char *)snapshotter->plugin->name;
    request.operationid = (char *)snapshot;
    return call_briefly(snapshotter, "Cancel", &request, &arena, &reply);
}
