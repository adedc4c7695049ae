/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OIM controller: see controller.h. It checks requests and serializes calls for one volume. The
 * accelerator does the work and has all state.
 */
#include "oim/controller.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "oim/accelerator.h"
#include "proto/oim.rpc.h"
#include "registry/client/announcer.h"
#include "registry/client/path.h"
#include "rpc/server/call.h"
#include "volumes/name_locks.h"

#define DEFAULT_DELAY_MS 60000u
#define BLOCK_BYTES 512
/* How long a second call for the same volume waits for the first. */
#define PATIENCE_MS 2000u
/* Limit for one call, even if its client waits longer. */
#define LONGEST_NS UINT64_C(30000000000)

struct oim_controller {
    const struct accelerator_ops *ops;
    struct accelerator *accelerator;
    struct announcer *announcer; /* NULL: does not register */
    struct name_locks locks;
};

/* ---- checks ---- */

/* C0, DEL, and C1, which UTF-8 writes as C2 80 to C2 9F. */
static bool
has_control_character(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f))
            return true;
    return false;
}

static struct error *
check_name(const char *field, const char *name)
{
    if (!name[0])
        return error_new(CODE_INVALID_ARGUMENT, "%s is missing", field);
    if (strlen(name) > ACCELERATOR_NAME_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "%s has more than %d bytes", field,
                         ACCELERATOR_NAME_MAX);
    if (has_control_character(name))
        return error_new(CODE_INVALID_ARGUMENT, "%s has control characters", field);
    return NULL;
}

static struct error *
check_size(int64_t size)
{
    if (size < 0)
        return error_new(CODE_INVALID_ARGUMENT, "size is negative");
    if (size % BLOCK_BYTES)
        return error_new(CODE_INVALID_ARGUMENT, "size %lld is not a multiple of %d bytes",
                         (long long)size, BLOCK_BYTES);
    return NULL;
}

/* ---- the four calls ---- */

static uint64_t
deadline_of(const struct call *call)
{
    uint64_t left_ns = call_time_left(call);
    return clock_now_ns() + (left_ns < LONGEST_NS ? left_ns : LONGEST_NS);
}

/* Checks the name and locks it. */
static struct error *
lock_name(struct oim_controller *controller, const char *field, const char *name,
          struct name_lock **lock)
{
    struct error *error = check_name(field, name);
    return error ? error : name_lock_wait(&controller->locks, "volume", name, PATIENCE_MS, lock);
}

static struct error *
check_image(const struct oim_controller *controller, const struct ceph_image *image)
{
    if (!controller->ops->map_ceph)
        return error_new(CODE_UNIMPLEMENTED,
                         "the accelerator \"%s\" cannot map volumes of Ceph: that needs spdk",
                         controller->ops->name);
    if (!image->pool[0] || !image->image[0])
        return error_new(CODE_INVALID_ARGUMENT, "ceph.%s is missing",
                         image->pool[0] ? "image" : "pool");
    return NULL;
}

static struct error *
map_ceph(struct oim_controller *controller, const Oim__V0__MapVolumeRequest *request,
         uint64_t deadline_ns, struct mapping *out)
{
    const Oim__V0__CephParams *ceph = request->ceph;
    const struct ceph_image image = {.user_id = ceph->user_id,
                                     .secret = ceph->secret,
                                     .monitors = ceph->monitors,
                                     .pool = ceph->pool,
                                     .image = ceph->image};
    struct error *error = check_image(controller, &image);
    if (!error)
        error = controller->ops->map_ceph(controller->accelerator, request->volume_id, &image,
                                          deadline_ns, out);
    return error;
}

static struct error *
map(struct oim_controller *controller, const Oim__V0__MapVolumeRequest *request,
    uint64_t deadline_ns, struct mapping *out)
{
    switch (request->params_case) {
    case OIM__V0__MAP_VOLUME_REQUEST__PARAMS_MALLOC:
        return controller->ops->map_malloc(controller->accelerator, request->volume_id, deadline_ns,
                                           out);
    case OIM__V0__MAP_VOLUME_REQUEST__PARAMS_CEPH:
        return map_ceph(controller, request, deadline_ns, out);
    default:
        return error_new(CODE_INVALID_ARGUMENT, "params are missing: malloc or ceph");
    }
}

static struct error *
map_volume(struct call *call, const Oim__V0__MapVolumeRequest *request,
           Oim__V0__MapVolumeReply *reply)
{
    struct oim_controller *controller = call_context(call);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct mapping mapping = {0};
    struct error *error = lock_name(controller, "volume_id", request->volume_id, &lock);
    if (!error)
        error = map(controller, request, deadline_of(call), &mapping);
    if (error)
        return error;
    reply->device = arena_string(call_arena(call), mapping.device);
    reply->scsi = arena_string(call_arena(call), mapping.scsi);
    return NULL;
}

static struct error *
unmap_volume(struct call *call, const Oim__V0__UnmapVolumeRequest *request,
             Oim__V0__UnmapVolumeReply *reply)
{
    struct oim_controller *controller = call_context(call);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    (void)reply;
    struct error *error = lock_name(controller, "volume_id", request->volume_id, &lock);
    if (error)
        return error;
    return controller->ops->unmap(controller->accelerator, request->volume_id, deadline_of(call));
}

static struct error *
provision_malloc_bdev(struct call *call, const Oim__V0__ProvisionMallocBDevRequest *request,
                      Oim__V0__ProvisionMallocBDevReply *reply)
{
    struct oim_controller *controller = call_context(call);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    (void)reply;
    struct error *error = check_size(request->size);
    if (!error)
        error = lock_name(controller, "bdev_name", request->bdev_name, &lock);
    if (error)
        return error;
    if (request->size == 0)
        return controller->ops->remove(controller->accelerator, request->bdev_name,
                                       deadline_of(call));
    return controller->ops->provision(controller->accelerator, request->bdev_name,
                                      (uint64_t)request->size, deadline_of(call));
}

static struct error *
check_malloc_bdev(struct call *call, const Oim__V0__CheckMallocBDevRequest *request,
                  Oim__V0__CheckMallocBDevReply *reply)
{
    struct oim_controller *controller = call_context(call);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    (void)reply;
    struct error *error = lock_name(controller, "bdev_name", request->bdev_name, &lock);
    if (error)
        return error;
    return controller->ops->check(controller->accelerator, request->bdev_name, deadline_of(call));
}

static const struct oim_v0_controller handlers = {
    .map_volume = {map_volume},
    .unmap_volume = {unmap_volume},
    .provision_malloc_bdev = {provision_malloc_bdev},
    .check_malloc_bdev = {check_malloc_bdev},
};

/* ---- opening ---- */

static struct error *
open_accelerator(struct oim_controller *controller, const struct oim_controller_options *options)
{
    const struct accelerator_options own = {.spdk_socket = options->spdk_socket,
                                            .vhost_controller = options->vhost_controller,
                                            .vhost_device = options->vhost_device,
                                            .data_directory = options->data_directory,
                                            .log = options->log};
    struct error *error = accelerator_find(options->accelerator, &controller->ops);
    return error ? error : controller->ops->open(&own, &controller->accelerator);
}

static struct error *
open_announcer(struct oim_controller *controller, const struct oim_controller_options *options)
{
    if (!options->registry)
        return NULL;
    if (!options->address || !options->address[0])
        return error_new(
            CODE_INVALID_ARGUMENT,
            "--registry needs --controller-address, where the registry can call this controller");
    const struct announcer_options own = {
        .registry = options->registry,
        .id = options->id,
        .address = options->address,
        .delay_ms = options->registry_delay_ms ? options->registry_delay_ms : DEFAULT_DELAY_MS,
        .tls = options->tls,
        .runtime = options->runtime,
        .log = options->log};
    return announcer_open(&own, &controller->announcer);
}

struct error *
oim_controller_open(const struct oim_controller_options *options, struct oim_controller **out)
{
    struct error *error = path_check_id(options->id ? options->id : "");
    if (error)
        return error;
    struct oim_controller *controller = memory_zeroed(sizeof *controller);
    name_locks_init(&controller->locks);
    error = open_announcer(controller, options);
    if (!error)
        error = open_accelerator(controller, options);
    if (error)
        oim_controller_close(STEAL(controller));
    *out = controller;
    return error;
}

void
oim_controller_add(struct oim_controller *controller, struct server *server)
{
    server_add_service(server, &oim_v0_controller_service, &handlers, controller);
}

void
oim_controller_begin(struct oim_controller *controller)
{
    if (controller->announcer)
        announcer_begin(controller->announcer);
}

void
oim_controller_stop(struct oim_controller *controller)
{
    if (controller->announcer)
        announcer_stop(controller->announcer);
}

void
oim_controller_close(struct oim_controller *controller)
{
    if (!controller)
        return;
    announcer_close(controller->announcer);
    if (controller->accelerator)
        controller->ops->close(controller->accelerator);
    name_locks_clear(&controller->locks);
    free(controller);
}
