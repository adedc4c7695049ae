/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the controller, directly or through the registry. */
#include "drivers/oim_internal.h"
#include "proto/oim.rpc.h"

#define MS_NS UINT64_C(1000000)
#define REPLY_ROOM (1u << 20)
#define OWN_TIMEOUT_MS 5000u /* of a call without a caller */

/* No bdev has this name: NOT_FOUND shows that the controller answers. */
#define PROBE_NAME "skycap-are-you-there"

/* To a CSI client UNIMPLEMENTED would mean that this driver has no such method. */
static struct error *
translate(struct oim_driver *oim, struct error *error)
{
    if (error && error->code == CODE_UNIMPLEMENTED)
        error->code = CODE_FAILED_PRECONDITION;
    return error_wrap(error, "connection \"%s\"", oim->base.connection);
}

static struct error *
ask(struct oim_driver *oim, struct call *call, const struct method *method,
    const ProtobufCMessage *request, struct arena *arena, void *reply)
{
    struct error *error = endpoint_check(&oim->endpoint);
    if (error)
        return translate(oim, error);
    struct call_options options = {
        .timeout_ns = (call ? oim->timeout_ms : OWN_TIMEOUT_MS) * MS_NS,
        .metadata = &oim->metadata,
        .parent = call_as_parent(call),
    };
    error = channel_call(oim->endpoint.channel, method, request, &options, arena, reply);
    if (endpoint_note(&oim->endpoint, error))
        monitor_wake(oim->monitor);
    return translate(oim, error);
}

/* For calls whose reply is empty. */
static struct error *
tell(struct oim_driver *oim, struct call *call, const struct method *method,
     const ProtobufCMessage *request)
{
    struct arena arena AUTO(arena_clear);
    ProtobufCMessage *reply;
    arena_init(&arena, NULL, 0, REPLY_ROOM);
    return ask(oim, call, method, request, &arena, &reply);
}

bool
oim_client_is_doubtful(const struct error *error)
{
    return error->code == CODE_UNAVAILABLE || error->code == CODE_DEADLINE_EXCEEDED ||
           error->code == CODE_CANCELLED || error->code == CODE_UNKNOWN ||
           error->code == CODE_INTERNAL;
}

struct error *
oim_client_check(struct oim_driver *oim, struct call *call, const char *bdev, bool *exists)
{
    Oim__V0__CheckMallocBDevRequest request = OIM__V0__CHECK_MALLOC_BDEV_REQUEST__INIT;
    request.bdev_name = (char *)bdev;
    struct error *error = tell(oim, call, OIM_V0_CONTROLLER_CHECK_MALLOC_BDEV, &request.base);
    *exists = !error;
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
oim_client_provision(struct oim_driver *oim, struct call *call, const char *bdev, int64_t size)
{
    Oim__V0__ProvisionMallocBDevRequest request = OIM__V0__PROVISION_MALLOC_BDEV_REQUEST__INIT;
    request.bdev_name = (char *)bdev;
    request.size = size;
    return tell(oim, call, OIM_V0_CONTROLLER_PROVISION_MALLOC_BDEV, &request.base);
}

struct error *
oim_client_map(struct oim_driver *oim, struct call *call, const Oim__V0__MapVolumeRequest *request,
               struct arena *arena, Skycap__Records__OimMappingRecord *out)
{
    struct arena room AUTO(arena_clear);
    Oim__V0__MapVolumeReply *reply = NULL;
    arena_init(&room, NULL, 0, REPLY_ROOM);
    struct error *error =
        ask(oim, call, OIM_V0_CONTROLLER_MAP_VOLUME, &request->base, &room, &reply);
    if (error || !reply)
        return error;
    skycap__records__oim_mapping_record__init(out);
    out->device = arena_string(arena, reply->device);
    out->scsi = arena_string(arena, reply->scsi);
    out->boot_id = oim->boot_id;
    return NULL;
}

struct error *
oim_client_unmap(struct oim_driver *oim, struct call *call, const char *volume)
{
    Oim__V0__UnmapVolumeRequest request = OIM__V0__UNMAP_VOLUME_REQUEST__INIT;
    request.volume_id = (char *)volume;
    return tell(oim, call, OIM_V0_CONTROLLER_UNMAP_VOLUME, &request.base);
}

struct error *
oim_client_check_ready(struct monitor *monitor, struct endpoint *endpoint)
{
    Oim__V0__CheckMallocBDevRequest request = OIM__V0__CHECK_MALLOC_BDEV_REQUEST__INIT;
    Oim__V0__CheckMallocBDevReply *reply;
    request.bdev_name = (char *)PROBE_NAME;
    struct error *error =
        monitor_ask(monitor, endpoint, OIM_V0_CONTROLLER_CHECK_MALLOC_BDEV, &request.base, &reply);
    return error_forgive(error, CODE_NOT_FOUND);
}
