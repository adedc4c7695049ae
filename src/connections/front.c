/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind --connections: see front.h. */
#include "connections/front.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "connections/router_internal.h"
#include "message/message_bytes.h"
#include "node/storage.h"

struct front {
    char data_directory[PATH_MAX];
    char instance[DRIVER_INSTANCE_SIZE];
    struct runtime *runtime;
    struct store *store;
    struct store *shared; /* --store; NULL: it is the same */
    struct fact_changes *changes;
    struct connections *connections;
    struct router *router;
};

static struct error *
open_store(struct front *front, const char *directory)
{
    char path[PATH_MAX + 32];
    struct error *error = storage_find_directory(directory, front->data_directory);
    if (error)
        return error;
    snprintf(path, sizeof path, "%s/connections", front->data_directory);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make the directory %s", path);
    snprintf(path, sizeof path, "sqlite:%s/connections", front->data_directory);
    return store_open(path, NULL, &front->store);
}

static struct error *
open_shared(struct front *front, const struct front_options *options)
{
    struct store_options etcd = {options->runtime, options->store_tls};
    if (!options->store_url)
        return NULL;
    return error_wrap(store_open(options->store_url, &etcd, &front->shared), "--store");
}

static struct error *
open_parts(struct front *front, const struct front_options *options)
{
    struct error *error = open_store(front, options->data_directory);
    if (!error)
        error = open_shared(front, options);
    if (error)
        return error;
    driver_make_instance(front->instance);
    front->runtime = options->runtime;
    front->changes = fact_changes_new();
    struct connections_options connections = {
        .directory = options->directory,
        .data_directory = front->data_directory,
        .node_id = options->node_id,
        .instance = front->instance,
        .store = front->store,
        .changes = front->changes,
        .runtime = options->runtime,
        .log = options->log,
    };
    error = error_wrap(connections_open(&connections, &front->connections), "--connections");
    if (error)
        return error;
    struct router_options router = {
        .connections = front->connections,
        .store = front->store,
        .shared = front->shared ? front->shared : front->store,
        .data_directory = front->data_directory,
        .driver_name = options->driver_name,
        .node_id = options->node_id,
        .is_node = options->is_node,
        .instance = front->instance,
        .tells_1_13 = options->tells_1_13,
        .changes = front->changes,
        .runtime = options->runtime,
        .log = options->log,
    };
    return router_open(&router, &front->router);
}

struct error *
front_open(const struct front_options *options, struct front **out)
{
    struct front *front = memory_zeroed(sizeof *front);
    struct error *error = open_parts(front, options);
    if (error) {
        front_close(front);
        return error;
    }
    *out = front;
    return NULL;
}

void
front_add(struct front *front, struct server *server, unsigned sides)
{
    router_add(server, front->router, sides);
    server_add_service(server, &skycap_v1_connections_service, &router_connections_handlers,
                       front->router);
    server_add_service(server, &skycap_v1_operations_service, &router_operations_handlers,
                       front->router);
    server_add_service(server, &skycap_v1_inventory_service, &router_inventory_handlers,
                       front->router);
}

void
front_stop(struct front *front)
{
    router_stop(front->router);
}

void
front_close(struct front *front)
{
    if (!front)
        return;
    store_stop(front->shared);
    router_close(front->router);
    connections_close(front->connections);
    fact_changes_release(front->changes);
    store_close(front->shared);
    store_close(front->store);
    free(front);
}

bool
front_is_ready(const struct front *front, struct arena *arena, const char **degraded)
{
    struct call *call = call_new_detached(front->runtime, 0);
    bool is_ready = router_is_ready(front->router, call, degraded);
    *degraded = arena_string(arena, *degraded);
    call_free_detached(call);
    return is_ready;
}

struct error *
front_describe_node(const struct front *front, struct buffer *out)
{
    struct arena arena AUTO(arena_clear);
    Csi__V1__NodeGetInfoResponse answer = CSI__V1__NODE_GET_INFO_RESPONSE__INIT;
    size_t size;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = router_describe_node(front->router, &arena, &answer);
    if (error)
        return error;
    const uint8_t *bytes = message_bytes_pack(&answer.base, &arena, &size);
    buffer_append(out, bytes, size);
    return NULL;
}

struct fact_changes *
front_changes(const struct front *front)
{
    return front->changes;
}

void
front_print_metrics(struct front *front, struct buffer *out)
{
    connections_print_metrics(front->connections, out);
}
