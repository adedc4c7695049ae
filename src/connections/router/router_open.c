/* SPDX-License-Identifier: Apache-2.0 */
/* The router's life: its stores, its connections, and the work that it resumes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/memory.h"
#include "cluster/cluster.h"
#include "cluster/drill_turns.h"
#include "connections/config/connection_metrics.h"
#include "connections/copy/copied_sources.h"
#include "connections/copy/cross_copy.h"
#include "connections/forward/choice_rows.h"
#include "connections/forward/topology_keys.h"
#include "connections/request/handles.h"
#include "connections/router/node_announcer.h"
#include "connections/router/places.h"
#include "connections/router/router_internal.h"
#include "connections/router/seen_volumes.h"
#include "node/storage.h"
#include "ops/ops.h"

#define MOST_SEEN 100000 /* volumes of other nodes; about 100 bytes each */

static struct error *
open_store(struct router *router, const char *directory)
{
    char path[PATH_MAX + 32];
    struct error *error = storage_find_directory(directory, router->data_directory);
    if (error)
        return error;
    snprintf(path, sizeof path, "%s/connections", router->data_directory);
    error = files_make_path(path);
    snprintf(path, sizeof path, "sqlite:%s/connections", router->data_directory);
    return error ? error : store_open(path, NULL, &router->store);
}

static struct error *
open_stores(struct router *router, const struct router_options *options)
{
    struct store_options network = {options->runtime, options->store_tls};
    struct error *error = open_store(router, options->data_directory);
    router->shared = router->store;
    if (error || !options->store_url)
        return error;
    return error_wrap(store_open(options->store_url, &network, &router->shared), "--store");
}

static struct error *
open_connections(struct router *router, const struct router_options *given)
{
    driver_make_instance(router->instance);
    if (router->repositories)
        router->turns = drill_turns_new(router->shared, router->node_id, given->cluster != NULL);
    router->changes = fact_changes_new();
    struct connections_options options = {
        .directory = given->directory,
        .only = given->only,
        .data_directory = router->data_directory,
        .node_id = router->node_id,
        .topology = given->cluster ? &given->cluster->topology : NULL,
        .is_in_cluster = given->cluster != NULL,
        .is_draining = &router->is_draining,
        .repositories = router->repositories,
        .turns = router->turns,
        .instance = router->instance,
        .store = router->store,
        .changes = router->changes,
        .runtime = router->runtime,
        .log = router->log,
    };
    struct error *error = connections_open(&options, &router->connections);
    return given->directory ? error_wrap(error, "--connections") : error;
}

static void
note_members(void *context)
{
    const struct router *router = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(router->cluster, &arena);
    seen_volumes_keep(router->seen_volumes, &members);
    connections_note_members(router->connections);
}

static struct error *
open_cluster(struct router *router, const struct router_cluster *given)
{
    if (!given)
        return NULL;
    struct cluster_options options = {
        .registry = given->registry,
        .node_id = router->node_id,
        .address = given->address,
        .renew_ms = given->renew_ms,
        .transfer_rate = given->transfer_rate,
        .tls = given->tls,
        .changed = note_members,
        .context = router,
        .runtime = router->runtime,
        .log = router->log,
    };
    router->places = places_new();
    router->seen_volumes = seen_volumes_new(MOST_SEEN);
    struct error *error = cluster_open(&options, &router->cluster);
    if (error)
        return error;
    connections_join(router->connections, router->cluster);
    if (router->turns)
        drill_turns_join(router->turns, router->cluster);
    return NULL;
}

void
router_begin(struct router *router)
{
    if (router->cluster)
        cluster_begin(router->cluster);
}

static struct error *
resume(struct router *router)
{
    choice_rows_look(router);
    error_free(handles_drop_old_marks(router->shared)); /* the next start tries again */
    router->ops = ops_open(&(struct ops_options){.store = router->store, .log = router->log});
    struct error *error = cross_copy_resume_all(router);
    return error ? error : node_announcer_open(router, &router->announcer);
}

struct error *
router_open(const struct router_options *options, struct router **out)
{
    struct router *router = memory_zeroed(sizeof *router);
    router->driver_name = options->driver_name;
    router->node_id = options->node_id;
    router->repositories = options->repositories;
    router->is_node = options->is_node;
    router->advertises_csi_1_13 = options->advertises_csi_1_13;
    router->has_files = options->directory != NULL;
    router->runtime = options->runtime;
    router->log = options->log;
    router->topology_keys = topology_keys_new();
    name_locks_init(&router->choosing);
    router->sources = copied_sources_new();
    atomic_init(&router->has_choices, true); /* until choice_rows_look finds none */
    router_make_services(router);
    struct error *error = open_stores(router, options);
    if (!error)
        error = router_read_draining(router);
    if (!error)
        error = open_connections(router, options);
    if (!error)
        error = open_cluster(router, options->cluster);
    if (!error)
        error = resume(router);
    if (error) {
        router_close(router);
        return error;
    }
    *out = router;
    return NULL;
}

void
router_stop(struct router *router)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    ops_stop(router->ops);
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (connection && connection->spec->driver->operations)
            ops_stop(connection->spec->driver->operations(connection->driver));
    }
}

void
router_stop_calls(struct router *router)
{
    if (router->cluster)
        cluster_stop_calls(router->cluster);
}

void
router_close(struct router *router)
{
    if (!router)
        return;
    if (router->shared != router->store)
        store_stop(router->shared);
    drill_turns_stop(router->turns);
    drill_turns_release(router->turns);
    node_announcer_close(router->announcer);
    ops_close(router->ops);
    router_free_services(router);
    name_locks_clear(&router->choosing);
    copied_sources_free(router->sources);
    topology_keys_free(router->topology_keys);
    cluster_stop(router->cluster);
    connections_close(router->connections);
    cluster_close(router->cluster);
    places_free(router->places);
    seen_volumes_free(router->seen_volumes);
    fact_changes_release(router->changes);
    if (router->shared != router->store)
        store_close(router->shared);
    store_close(router->store);
    free(router);
}

struct ops *
router_own_operations(const struct router *router)
{
    return router->ops;
}

struct fact_changes *
router_changes(const struct router *router)
{
    return router->changes;
}

void
router_print_metrics(struct router *router, size_t most_usages, struct buffer *out)
{
    struct connection_metrics_request request = {most_usages, router->ops};
    connections_print_metrics(router->connections, &request, out);
    router_print_drills(router, out);
    if (router->cluster)
        cluster_print_metrics(router->cluster, out);
}
