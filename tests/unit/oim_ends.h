/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver `oim` before a controller that the test itself is: bdevs are files with loop devices (where the test is root), or nothing but names; it does
 * as it is told.
 */
#ifndef UNIT_OIM_ENDS_H
#define UNIT_OIM_ENDS_H

#include <ftw.h>
#include <sys/stat.h>

#include "backends/loop.h"
#include "driver_ends.h"
#include "proto/oim.rpc.h"

#define MOST_BDEVS 8

struct fake_bdev {
    char name[64];
    int64_t size; /* 0: the slot is free */
    bool is_mapped;
};

/* A stand-in for an OIM controller. */
struct fake_controller {
    struct ends ends;
    char directory[64];
    struct fake_bdev bdevs[MOST_BDEVS];
    bool has_devices;          /* mapping attaches a loop device */
    const char *only_device;   /* whatever is mapped is this one; NULL: as it should be */
    atomic_bool hangs;         /* nothing is answered */
    atomic_bool loses_answers; /* what is done is not told: UNAVAILABLE */
    atomic_int maps, unmaps;   /* calls */
    struct gate may_go;
    pthread_mutex_t lock;
    char controller_id[64]; /* that the last call has brought */
    char params[512];       /* of the last MapVolume */
};

static inline struct fake_bdev *
fake_find(struct fake_controller *fake, const char *name)
{
    for (size_t i = 0; i < MOST_BDEVS; i++)
        if (fake->bdevs[i].size && !strcmp(fake->bdevs[i].name, name))
            return &fake->bdevs[i];
    return NULL;
}

static inline const char *
fake_file(struct fake_controller *fake, const char *name, struct arena *arena)
{
    return arena_print(arena, "%s/%s", fake->directory, name);
}

/* One call at a time. */
static inline struct fake_controller *
fake_enter(struct call *call)
{
    struct fake_controller *fake = call_context(call);
    const char *id = metadata_find(call_metadata(call), "controllerid");
    if (atomic_load(&fake->hangs))
        gate_wait(&fake->may_go, 1);
    pthread_mutex_lock(&fake->lock);
    snprintf(fake->controller_id, sizeof fake->controller_id, "%s", id ? id : "");
    return fake;
}

static inline void
fake_leave(struct fake_controller **fake)
{
    pthread_mutex_unlock(&(*fake)->lock);
}

static inline struct error *
fake_end(struct fake_controller *fake)
{
    return atomic_load(&fake->loses_answers) ? error_new(CODE_UNAVAILABLE, "the answer is lost")
                                             : NULL;
}

static inline struct error *
fake_check(struct call *call, const Oim__V0__CheckMallocBDevRequest *request,
           Oim__V0__CheckMallocBDevReply *reply)
{
    struct fake_controller *fake AUTO(fake_leave) = fake_enter(call);
    (void)reply;
    if (fake_find(fake, request->bdev_name))
        return NULL;
    return error_new(CODE_NOT_FOUND, "there is no bdev \"%s\"", request->bdev_name);
}

static inline struct error *
fake_delete(struct fake_controller *fake, const char *name, struct arena *arena)
{
    struct fake_bdev *bdev = fake_find(fake, name);
    if (bdev && bdev->is_mapped)
        return error_new(CODE_FAILED_PRECONDITION, "it is mapped");
    if (bdev)
        bdev->size = 0;
    unlink(fake_file(fake, name, arena));
    return fake_end(fake);
}

static inline struct error *
fake_provision(struct call *call, const Oim__V0__ProvisionMallocBDevRequest *request,
               Oim__V0__ProvisionMallocBDevReply *reply)
{
    struct fake_controller *fake AUTO(fake_leave) = fake_enter(call);
    struct fake_bdev *bdev = fake_find(fake, request->bdev_name);
    (void)reply;
    if (!request->size)
        return fake_delete(fake, request->bdev_name, call_arena(call));
    if (request->size % 512)
        return error_new(CODE_INVALID_ARGUMENT, "no multiple of 512");
    if (bdev)
        return bdev->size == request->size ? NULL : error_new(CODE_ALREADY_EXISTS, "other size");
    for (bdev = fake->bdevs; bdev->size; bdev++)
        if (bdev == &fake->bdevs[MOST_BDEVS - 1])
            return error_new(CODE_RESOURCE_EXHAUSTED, "no more");
    bdev->size = request->size;
    bdev->is_mapped = false;
    snprintf(bdev->name, sizeof bdev->name, "%s", request->bdev_name);
    const char *file = fake_file(fake, bdev->name, call_arena(call));
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, bdev->size) == 0 && close(fd) == 0);
    return fake_end(fake);
}

static inline struct error *
fake_attach(struct fake_controller *fake, const char *name, struct arena *arena, char **device)
{
    struct loop_device loop AUTO(loop_release) = LOOP_NONE;
    *device = arena_string(arena, fake->only_device ? fake->only_device : "block/of-nobody");
    if (!fake->has_devices || fake->only_device)
        return NULL;
    struct error *error = loop_attach(fake_file(fake, name, arena), 0, &loop);
    if (!error)
        *device = arena_print(arena, "/devices/virtual/block%s", strrchr(loop.path, '/'));
    return error;
}

static inline struct error *
fake_map(struct call *call, const Oim__V0__MapVolumeRequest *request,
         Oim__V0__MapVolumeReply *reply)
{
    struct fake_controller *fake AUTO(fake_leave) = fake_enter(call);
    struct fake_bdev *bdev = fake_find(fake, request->volume_id);
    const Oim__V0__CephParams *ceph = request->ceph;
    atomic_fetch_add(&fake->maps, 1);
    if (request->params_case == OIM__V0__MAP_VOLUME_REQUEST__PARAMS_CEPH) {
        snprintf(fake->params, sizeof fake->params, "%s %s %s %s %s", ceph->user_id, ceph->secret,
                 ceph->monitors, ceph->pool, ceph->image);
        return error_new(CODE_FAILED_PRECONDITION, "there is no Ceph here");
    }
    if (!bdev)
        return error_new(CODE_NOT_FOUND, "there is no such bdev");
    bdev->is_mapped = true;
    struct error *error = fake_attach(fake, request->volume_id, call_arena(call), &reply->device);
    return error ? error : fake_end(fake);
}

static inline struct error *
fake_unmap(struct call *call, const Oim__V0__UnmapVolumeRequest *request,
           Oim__V0__UnmapVolumeReply *reply)
{
    struct fake_controller *fake AUTO(fake_leave) = fake_enter(call);
    struct fake_bdev *bdev = fake_find(fake, request->volume_id);
    (void)reply;
    atomic_fetch_add(&fake->unmaps, 1);
    if (bdev && bdev->is_mapped && fake->has_devices)
        error_free(loop_detach(fake_file(fake, bdev->name, call_arena(call))));
    if (bdev)
        bdev->is_mapped = false;
    return fake_end(fake);
}

static const struct oim_v0_controller fake_handlers = {
    .map_volume = {fake_map},
    .unmap_volume = {fake_unmap},
    .provision_malloc_bdev = {fake_provision},
    .check_malloc_bdev = {fake_check},
};

static inline void
fake_serve(struct fake_controller *fake)
{
    fake->ends.server = server_new(fake->ends.runtime, &(struct server_options){0});
    server_add_service(fake->ends.server, &oim_v0_controller_service, &fake_handlers, fake);
    succeed(server_listen(fake->ends.server, fake->ends.address, NULL));
}

/* ---- both ---- */

struct oim_pair {
    struct fake_controller fake;
    struct ends ends; /* the driver's runtime */
    struct driver *driver;
    struct arena arena;
    char directory[64];
};

static inline void
pair_open_driver(struct oim_pair *pair, const struct setting *settings, int64_t max_calls)
{
    struct driver_options options = {
        .connection = "acc",
        .settings = settings,
        .data_directory = pair->directory,
        .node_id = "here",
        .instance = "process-1",
        .max_calls = max_calls,
        .timeout_ms = 2000,
        .runtime = pair->ends.runtime,
        .log = &pair->ends.log,
    };
    succeed(driver_open(driver_find("oim"), &options, &pair->driver));
}

static inline const struct setting *
pair_settings(struct oim_pair *pair)
{
    return make_settings(&pair->arena, "endpoint", pair->fake.ends.address, "probe-interval",
                         "50ms", "probe-timeout", "300ms", NULL);
}

static inline void
pair_prepare(struct oim_pair *pair)
{
    *pair = (struct oim_pair){.fake = {.may_go = GATE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER}};
    snprintf(pair->directory, sizeof pair->directory, "/tmp/skycap-oim-XXXXXX");
    snprintf(pair->fake.directory, sizeof pair->fake.directory, "/tmp/skycap-fake-XXXXXX");
    CHECK(mkdtemp(pair->directory) && mkdtemp(pair->fake.directory));
    arena_init(&pair->arena, NULL, 0, SIZE_MAX);
    ends_choose_address(pair->fake.ends.address);
    ends_open_runtime(&pair->fake.ends, (struct runtime_options){0});
    fake_serve(&pair->fake);
    ends_open_runtime(&pair->ends, (struct runtime_options){0});
    pair->ends.log.level = LOG_ERROR;
}

static inline void
pair_open(struct oim_pair *pair)
{
    pair_prepare(pair);
    pair_open_driver(pair, pair_settings(pair), 64);
    CHECK(wait_for_facts(pair->driver, true, NULL));
}

static inline void
pair_close_driver(struct oim_pair *pair)
{
    driver_release(pair->driver);
    runtime_close(pair->ends.runtime); /* waits for it */
}

/* As after a crash of our process: what is not in the store is gone. */
static inline void
pair_restart(struct oim_pair *pair)
{
    pair_close_driver(pair);
    ends_open_runtime(&pair->ends, (struct runtime_options){0});
    pair_open_driver(pair, pair_settings(pair), 64);
}

static inline int
remove_one(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline void
pair_close(struct oim_pair *pair)
{
    gate_pass(&pair->fake.may_go);
    pair_close_driver(pair);
    server_free(pair->fake.ends.server);
    runtime_close(pair->fake.ends.runtime);
    CHECK(nftw(pair->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0);
    CHECK(nftw(pair->fake.directory, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0);
    arena_clear(&pair->arena);
}

/* ---- calls ---- */

/* The reply, if there is one, is the caller's to free. Several threads may call. */
static inline struct error *
pair_call(struct oim_pair *pair, const char *path, const ProtobufCMessage *request,
          uint32_t timeout_ms, void *reply)
{
    const struct method *method = service_find_method(path);
    struct call *call = call_new_detached(pair->ends.runtime, timeout_ms * MS);
    ProtobufCMessage *answer = arena_zeroed(call_arena(call), method->output->sizeof_message);
    protobuf_c_message_init(method->output, answer);
    struct error *error = pair->driver->ops->call(pair->driver, call, method, request, answer);
    if (!error && reply) {
        /* The call's arena goes with the call. */
        size_t size = protobuf_c_message_get_packed_size(answer);
        uint8_t *bytes = arena_alloc(call_arena(call), size);
        protobuf_c_message_pack(answer, bytes);
        *(ProtobufCMessage **)reply = protobuf_c_message_unpack(method->output, NULL, size, bytes);
    }
    call_free_detached(call);
    return error;
}

#define CAPABILITY_MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* fs_type NULL: block. */
static inline Csi__V1__VolumeCapability *
capability_of(struct arena *arena, const char *fs_type,
              Csi__V1__VolumeCapability__AccessMode__Mode mode)
{
    Csi__V1__VolumeCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__volume_capability__init(capability);
    capability->access_mode = arena_alloc(arena, sizeof *capability->access_mode);
    csi__v1__volume_capability__access_mode__init(capability->access_mode);
    capability->access_mode->mode = mode;
    if (fs_type) {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
        capability->mount = arena_alloc(arena, sizeof *capability->mount);
        csi__v1__volume_capability__mount_volume__init(capability->mount);
        capability->mount->fs_type = (char *)fs_type;
    } else {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability->block = arena_alloc(arena, sizeof *capability->block);
        csi__v1__volume_capability__block_volume__init(capability->block);
    }
    return capability;
}

struct wanted {
    const char *name;
    const char *fs_type; /* NULL: block */
    int64_t required, limit;
    Csi__V1__VolumeCapability__AccessMode__Mode mode; /* 0: SINGLE_NODE_WRITER */
    uint32_t timeout_ms;                              /* 0: none */
};

static inline Csi__V1__VolumeCapability__AccessMode__Mode
mode_of(Csi__V1__VolumeCapability__AccessMode__Mode mode)
{
    return mode ? mode : CAPABILITY_MODE(SINGLE_NODE_WRITER);
}

/* The id and the size of what was made. */
static inline struct error *
pair_create(struct oim_pair *pair, const struct wanted *wanted, const char **id, int64_t *size)
{
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
    struct arena own AUTO(arena_clear); /* several threads may ask */
    arena_init(&own, NULL, 0, SIZE_MAX);
    Csi__V1__VolumeCapability *capability =
        capability_of(&own, wanted->fs_type, mode_of(wanted->mode));
    Csi__V1__CreateVolumeResponse *reply;
    range.required_bytes = wanted->required;
    range.limit_bytes = wanted->limit;
    request.name = (char *)wanted->name;
    request.capacity_range = &range;
    request.volume_capabilities = &capability;
    request.n_volume_capabilities = 1;
    struct error *error = pair_call(pair, "csi.v1.Controller/CreateVolume", &request.base,
                                    wanted->timeout_ms, &reply);
    if (error)
        return error;
    *id = arena_string(&pair->arena, reply->volume->volume_id);
    *size = reply->volume->capacity_bytes;
    csi__v1__create_volume_response__free_unpacked(reply, NULL);
    return NULL;
}

static inline struct error *
pair_delete(struct oim_pair *pair, const char *id)
{
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    request.volume_id = (char *)id;
    return pair_call(pair, "csi.v1.Controller/DeleteVolume", &request.base, 0, NULL);
}

#endif
