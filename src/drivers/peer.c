/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver `peer`: the volumes that a connection of another node keeps. No file names it: the
 * connections of a cluster's other nodes come from the registry. Its calls are made at the engine
 * there, so ids are those of driver `local`.
 *
 * All nodes run the same program, so what the engine there can do is what an engine here can do.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "csi/ids.h"
#include "drivers/peer.h"
#include "proto/csi.rpc.h"
#include "rpc/client/channel.h"

struct peer_driver {
    struct driver base; /* first */
    struct remote *remote;
    char *node_id;
    uint64_t timeout_ns;
};

/* A node that does not renew its registration is not called: it would keep each caller waiting. */
static struct error *
check_registered(struct peer_driver *driver)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(&driver->base);
    if (facts->is_ready)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "node \"%s\" %s", driver->node_id, facts->trouble);
}

struct error *
peer_driver_call(struct driver *base, struct call *call, const struct method *method,
                 const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct peer_driver *driver = (struct peer_driver *)base;
    struct error *error = check_registered(driver);
    if (!error)
        error = driver_begin_call(base);
    if (error) {
        error->code = CODE_UNAVAILABLE; /* RESOURCE_EXHAUSTED would be the word of the other node */
        return error;
    }
    struct remote_call what = {base->connection, method, request, driver->timeout_ns};
    error = remote_call(driver->remote, call, &what, reply);
    driver_end_call(base);
    return error;
}

/* ---- streams ---- */

/* "s:local/HANDLE" becomes the id that every router of the cluster knows. */
static char *
global_id(const struct driver *base, const char *id, struct arena *arena)
{
    const char *handle = ids_handle(ID_SNAPSHOT, id);
    return handle ? arena_print(arena, "s:%s/%s", base->connection, handle) : (char *)id;
}

/* A copy with global ids; NULL: the method is not one for other nodes. */
static const ProtobufCMessage *
with_global_ids(const struct driver *base, const ProtobufCMessage *request, struct arena *arena)
{
    ProtobufCMessage *copy =
        (void *)arena_copy(arena, request, request->descriptor->sizeof_message);
    if (request->descriptor == &csi__v1__get_metadata_allocated_request__descriptor) {
        Csi__V1__GetMetadataAllocatedRequest *own = (void *)copy;
        own->snapshot_id = global_id(base, own->snapshot_id, arena);
        return copy;
    }
    if (request->descriptor == &csi__v1__get_metadata_delta_request__descriptor) {
        Csi__V1__GetMetadataDeltaRequest *own = (void *)copy;
        own->base_snapshot_id = global_id(base, own->base_snapshot_id, arena);
        own->target_snapshot_id = global_id(base, own->target_snapshot_id, arena);
        return copy;
    }
    return NULL;
}

static struct error *
pass_on(struct call *call, struct client_call *stream)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (;;) {
        ProtobufCMessage *message;
        struct error *error = client_call_recv(stream, &arena, &message);
        if (!error && !message)
            return client_call_finish(stream);
        if (!error)
            error = call_send(call, message);
        if (error)
            return error;
        arena_clear(&arena);
    }
}

/* The other node's router serves the method, as it does for its own clients. */
static struct error *
stream_peer(struct driver *base, struct call *call, const struct method *method,
            const ProtobufCMessage *request)
{
    struct peer_driver *driver = (struct peer_driver *)base;
    const ProtobufCMessage *own = with_global_ids(base, request, call_arena(call));
    struct client_call *stream;
    if (!own)
        return error_new(CODE_UNIMPLEMENTED,
                         "%s is not forwarded to other nodes; call it on node \"%s\"", method->path,
                         driver->node_id);
    struct error *error = check_registered(driver);
    if (!error)
        error = driver_begin_call(base);
    if (error) {
        error->code = CODE_UNAVAILABLE;
        return error;
    }
    error = remote_stream(driver->remote, call, method, own, &stream);
    if (!error) {
        error = pass_on(call, stream);
        client_call_free(stream);
    }
    driver_end_call(base);
    return error;
}

void
peer_driver_close(struct driver *base)
{
    struct peer_driver *driver = (struct peer_driver *)base;
    remote_release(driver->remote);
    driver_clear(base);
    free(driver->node_id);
    free(driver);
}

struct driver *
peer_driver_open(const struct driver_ops *ops, const struct peer_driver_options *options,
                 struct remote *taken)
{
    struct peer_driver *driver = memory_zeroed(sizeof *driver);
    driver_init(&driver->base, ops, &options->driver);
    driver->remote = taken;
    driver->node_id = memory_string(options->node_id);
    driver->timeout_ns = options->driver.timeout_ms * UINT64_C(1000000);
    struct driver_facts *facts = driver_facts_copy(options->like);
    facts->is_known = facts->is_node_known = true;
    facts->is_ready = !options->trouble;
    facts->trouble = options->trouble ? arena_string(&facts->arena, options->trouble) : NULL;
    facts->node_id = arena_string(&facts->arena, options->node_id);
    facts->topology = text_map_copy(options->topology, &facts->arena);
    driver_set_facts(&driver->base, facts);
    return &driver->base;
}

const struct driver_ops driver_peer = {
    .name = "peer",
    .speaks_our_ids = true,
    .has_homes = true,
    .close = peer_driver_close,
    .call = peer_driver_call,
    .stream = stream_peer,
};
