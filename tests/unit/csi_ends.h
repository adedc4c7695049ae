/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine over a back end of one's choice and a store in memory, served in this process, and a channel to it: for tests of CSI services.
 * What a test asks for lives in the arena until the end.
 */
#ifndef UNIT_CSI_ENDS_H
#define UNIT_CSI_ENDS_H

#include "backends/backend.h"
#include "csi/controller.h"
#include "csi/group_controller.h"
#include "csi/ids.h"
#include "csi/snapshot_metadata.h"
#include "node/volume_use.h"
#include "rpc_ends.h"
#include "store/store.h"

static const struct log csi_quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};

struct csi_ends {
    struct ends ends;
    struct store *store;
    struct backend *backend;
    struct engine *engine;
    struct controller controller;
    struct arena arena;
};

static inline void
csi_ends_open_engine(struct csi_ends *csi)
{
    succeed(engine_open(&(struct engine_options){.store = csi->store,
                                                 .backend = csi->backend,
                                                 .use = &node_volume_use,
                                                 .node_id = "node-1",
                                                 .log = &csi_quiet},
                        &csi->engine));
    csi->controller = (struct controller){.engine = csi->engine};
}

/* Without a server. */
static inline void
csi_ends_open_parts(struct csi_ends *csi, const char *backend, const char *directory)
{
    *csi = (struct csi_ends){0};
    arena_init(&csi->arena, NULL, 0, SIZE_MAX);
    succeed(store_open("memory:", NULL, &csi->store));
    succeed(backend_open(backend,
                         &(struct backend_options){.directory = directory, .log = &csi_quiet},
                         &csi->backend));
    csi_ends_open_engine(csi);
}

static inline void
csi_ends_open(struct csi_ends *csi, const char *backend, const char *directory)
{
    csi_ends_open_parts(csi, backend, directory);
    ends_choose_address(csi->ends.address);
    ends_open_runtime(&csi->ends, (struct runtime_options){0});
    csi->ends.server = server_new(csi->ends.runtime, &(struct server_options){0});
    server_add_service(csi->ends.server, &csi_v1_controller_service, &controller_handlers,
                       &csi->controller);
    server_add_service(csi->ends.server, &csi_v1_group_controller_service,
                       &group_controller_handlers, &csi->controller);
    server_add_service(csi->ends.server, &csi_v1_snapshot_metadata_service,
                       &snapshot_metadata_handlers, &csi->controller);
    succeed(server_listen(csi->ends.server, csi->ends.address, NULL));
    succeed(channel_open(csi->ends.runtime, csi->ends.address, &(struct channel_options){0},
                         &csi->ends.channel));
}

/* As after a restart: the rows and the data are there, nothing runs. */
static inline void
csi_ends_reopen_engine(struct csi_ends *csi)
{
    engine_close(csi->engine);
    csi_ends_open_engine(csi);
}

static inline void
csi_ends_close(struct csi_ends *csi)
{
    if (csi->ends.runtime)
        ends_close(&csi->ends);
    engine_close(csi->engine);
    backend_close(csi->backend);
    store_close(csi->store);
    arena_clear(&csi->arena);
}

/* `request` is a message, `reply` the address of a pointer to one. */
static inline struct error *
csi_call(struct csi_ends *csi, const struct method *method, const ProtobufCMessage *request,
         void *reply)
{
    return channel_call(csi->ends.channel, method, request, NULL, &csi->arena, reply);
}

/* With snapshots in it, which are immutable where the file system can. */
static inline void
csi_remove_directory(const char *directory)
{
    char command[256];
    snprintf(command, sizeof command, "chattr -fR -i '%.64s'; rm -rf '%.64s'", directory,
             directory);
    CHECK(system(command) == 0);
}

/* ---- volumes and snapshots ---- */

/* `fs_type`: "" for a tree, "raw" for a device, or a file system in an image. Gives its id. */
static inline char *
csi_create_volume(struct csi_ends *csi, const char *name, const char *fs_type, int64_t size_bytes)
{
    Csi__V1__VolumeCapability__MountVolume mount = CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
    Csi__V1__VolumeCapability__BlockVolume block = CSI__V1__VOLUME_CAPABILITY__BLOCK_VOLUME__INIT;
    Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
    Csi__V1__VolumeCapability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
    Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse *reply;
    mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    capability.access_mode = &mode;
    capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    capability.mount = &mount;
    mount.fs_type = (char *)fs_type;
    if (!strcmp(fs_type, "raw")) {
        capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability.block = &block;
    }
    range.required_bytes = size_bytes;
    request.name = (char *)name;
    request.capacity_range = &range;
    request.volume_capabilities = (Csi__V1__VolumeCapability *[]){&capability};
    request.n_volume_capabilities = 1;
    succeed(csi_call(csi, CSI_V1_CONTROLLER_CREATE_VOLUME, &request.base, &reply));
    return reply->volume->volume_id;
}

/* Ready, however long it takes. */
static inline Csi__V1__Snapshot *
csi_create_snapshot(struct csi_ends *csi, const char *name, const char *volume_id)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    request.name = (char *)name;
    request.source_volume_id = (char *)volume_id;
    do
        succeed(csi_call(csi, CSI_V1_CONTROLLER_CREATE_SNAPSHOT, &request.base, &reply));
    while (!reply->snapshot->ready_to_use);
    return reply->snapshot;
}

static inline struct error *
csi_delete_snapshot(struct csi_ends *csi, const char *id)
{
    Csi__V1__DeleteSnapshotRequest request = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__DeleteSnapshotResponse *reply;
    request.snapshot_id = (char *)id;
    return csi_call(csi, CSI_V1_CONTROLLER_DELETE_SNAPSHOT, &request.base, &reply);
}

static inline struct error *
csi_create_group(struct csi_ends *csi, const char *name, char **volume_ids, size_t count,
                 Csi__V1__VolumeGroupSnapshot **out)
{
    Csi__V1__CreateVolumeGroupSnapshotRequest request =
        CSI__V1__CREATE_VOLUME_GROUP_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateVolumeGroupSnapshotResponse *reply;
    request.name = (char *)name;
    request.source_volume_ids = volume_ids;
    request.n_source_volume_ids = count;
    struct error *error =
        csi_call(csi, CSI_V1_GROUP_CONTROLLER_CREATE_VOLUME_GROUP_SNAPSHOT, &request.base, &reply);
    if (!error)
        *out = reply->group_snapshot;
    return error;
}

static inline struct error *
csi_delete_group(struct csi_ends *csi, const char *id, char **snapshot_ids, size_t count)
{
    Csi__V1__DeleteVolumeGroupSnapshotRequest request =
        CSI__V1__DELETE_VOLUME_GROUP_SNAPSHOT_REQUEST__INIT;
    Csi__V1__DeleteVolumeGroupSnapshotResponse *reply;
    request.group_snapshot_id = (char *)id;
    request.snapshot_ids = snapshot_ids;
    request.n_snapshot_ids = count;
    return csi_call(csi, CSI_V1_GROUP_CONTROLLER_DELETE_VOLUME_GROUP_SNAPSHOT, &request.base,
                    &reply);
}

/* ---- the data behind an id ---- */

static inline struct data
csi_data(const char *id, enum volume_kind kind)
{
    bool is_volume = id[0] == ID_VOLUME;
    struct data data = {.kind = kind, .role = is_volume ? ROLE_VOLUME : ROLE_SNAPSHOT};
    const char *handle = ids_handle(is_volume ? ID_VOLUME : ID_SNAPSHOT, id);
    snprintf(data.handle, sizeof data.handle, "%s", handle);
    return data;
}

/* Where a tree or an image is; in the arena. */
static inline char *
csi_path(struct csi_ends *csi, const char *id, enum volume_kind kind)
{
    struct data data = csi_data(id, kind);
    char path[4096];
    succeed(backend_path(csi->backend, &data, path, sizeof path));
    return arena_string(&csi->arena, path);
}

/* How much the back end holds. */
static inline struct error *
csi_count_one(void *context, const struct backend_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return NULL;
}

static inline unsigned
csi_count_data(struct csi_ends *csi)
{
    unsigned count = 0;
    succeed(backend_list(csi->backend, csi_count_one, &count));
    return count;
}

#endif
