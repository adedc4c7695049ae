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
#include "drivers/peer.h"

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

static struct error *
call_engine(struct driver *base, struct call *call, const struct method *method,
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

static struct error *
stream_peer(struct driver *base, struct call *call, const struct method *method,
            const ProtobufCMessage *request)
{
    (void)call;
    (void)request;
    const struct peer_driver *driver = (const struct peer_driver *)base;
    return error_new(CODE_UNIMPLEMENTED,
                     "%s is not forwarded to other nodes; call it on node \"%s\"", method->path,
                     driver->node_id);
}

static void
close_peer(struct driver *base)
{
    struct peer_driver *driver = (struct peer_driver *)base;
    remote_release(driver->remote);
    driver_clear(base);
    free(driver->node_id);
    free(driver);
}

struct driver *
peer_driver_open(const struct peer_driver_options *options, struct remote *taken)
{
    struct peer_driver *driver = memory_zeroed(sizeof *driver);
    driver_init(&driver->base, &driver_peer, &options->driver);
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
    .close = close_peer,
    .call = call_engine,
    .stream = stream_peer,
};
