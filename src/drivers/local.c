/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver `local`: volumes of this node, in an engine of the connection's own.
 *
 *     options:
 *       data: /var/lib/skycap/fast     # where volumes and state live; default: below --data
 *       backend: [btrfs]               # as --backend of skycap serve
 *       pool-size: 100Gi
 *       quotas: true
 *       max-volumes: 100
 *       overprovisioning: 300          # percent
 */
#include <stdlib.h>

#include "base/memory.h"
#include "cluster/drill_turns.h"
#include "cluster/fetch.h"
#include "cluster/mover.h"
#include "cluster/objects_node.h"
#include "cluster/replicator.h"
#include "csi/services.h"
#include "drivers/driver.h"
#include "drivers/facts_reader.h"
#include "drivers/own_directory.h"
#include "node/storage.h"
#include "proto/csi.rpc.h"
#include "volumes/figures.h"

struct local {
    struct driver driver; /* first */
    struct arena arena;
    struct storage storage;
    struct fetcher *fetcher; /* NULL: in no cluster */
    struct mover *mover;     /* the same */
    struct replicator *replicator;
    struct object_nodes *nodes;
    struct drill_turns *turns;     /* NULL: no repositories */
    struct drill_schedule *drills; /* the same */
    struct controller controller;
    struct identity identity;
    struct csi_service services[SERVICES_ALL_COUNT];
};

static const char *const known_keys[] = {"data",        "backend",          "pool-device",
                                         "pool-size",   "pool-preallocate", "quotas",
                                         "max-volumes", "overprovisioning", NULL};

struct limits {
    int64_t max_volumes;
    int64_t overprovisioning;
};

static struct error *
read_options(const struct setting *settings, struct arena *arena, struct storage_options *out,
             struct limits *limits)
{
    struct error *error = settings_check_keys(settings, known_keys);
    if (!error)
        error = settings_read_text(settings, "data", &out->directory);
    if (!error)
        error = settings_read_list(settings, "backend", arena, &out->backends);
    if (!error)
        error = settings_read_text(settings, "pool-device", &out->pool_device);
    if (!error)
        error = settings_read_text(settings, "pool-size", &out->pool_size);
    if (!error)
        error = settings_read_flag(settings, "pool-preallocate", &out->pool_is_allocated);
    if (!error)
        error = settings_read_flag(settings, "quotas", &out->may_switch_quotas_on);
    if (!error)
        error = settings_read_number(settings, "max-volumes", 0, INT32_MAX, &limits->max_volumes);
    if (!error)
        error = settings_read_number(settings, "overprovisioning", 1,
                                     CONTROLLER_MOST_OVERPROVISIONING, &limits->overprovisioning);
    if (!error && out->directory && out->directory[0] != '/')
        error = error_new(CODE_INVALID_ARGUMENT, "data: \"%s\" is not an absolute path",
                          out->directory);
    return error;
}

static struct error *
check(const struct setting *settings)
{
    struct arena arena;
    struct storage_options options = {0};
    struct limits limits = {0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = read_options(settings, &arena, &options, &limits);
    arena_clear(&arena);
    return error;
}

/* ---- opening ---- */

static void
close_local(struct driver *driver)
{
    struct local *local = (struct local *)driver;
    if (local->storage.engine)
        engine_stop(local->storage.engine);
    drill_schedule_close(local->drills);
    drill_turns_release(local->turns);
    storage_close(&local->storage);
    mover_free(local->mover);
    fetcher_free(local->fetcher);
    replicator_free(local->replicator);
    object_nodes_free(local->nodes);
    arena_clear(&local->arena);
    driver_clear(&local->driver);
    free(local);
}

static struct error *
open_storage(struct local *local, const struct driver_options *options)
{
    struct storage_options storage = {
        .node_id = arena_string(&local->arena, options->node_id),
        .is_in_cluster = options->is_in_cluster,
        .repositories = options->repositories,
        .log = options->log,
    };
    if (options->topology)
        storage.topology = text_map_copy(options->topology, &local->arena);
    struct limits limits = {0};
    struct error *error = read_options(options->settings, &local->arena, &storage, &limits);
    if (!error && !storage.directory)
        error = own_directory_find(options, &local->arena, &storage.directory);
    if (!error)
        error = storage_open(&storage, &local->storage);
    if (error)
        return error;
    local->controller = (struct controller){
        .engine = local->storage.engine,
        .max_volumes_per_node = (uint64_t)limits.max_volumes,
        .overprovisioning_percent = (unsigned)limits.overprovisioning,
        .advertises_csi_1_13 = true,
    };
    local->identity = (struct identity){"csi.skycap.dev", storage.node_id, &local->controller};
    services_list(&local->identity, local->services);
    return NULL;
}

/* ---- drills ---- */

static enum drill_answer
take_turn(void *context, const char *repository, uint32_t every_hours)
{
    const struct local *local = context;
    return drill_turns_take(local->turns, local->driver.connection, repository, every_hours);
}

static void
succeed_turn(void *context, const char *repository)
{
    const struct local *local = context;
    drill_turns_succeed(local->turns, repository);
}

static struct error *
open_drills(struct local *local, const struct driver_options *options)
{
    drill_sweep(local->storage.engine);
    if (!options->turns)
        return NULL;
    local->turns = drill_turns_share(options->turns);
    struct drill_turn turn = {take_turn, succeed_turn, local};
    return drill_schedule_open(local->storage.engine, &turn, &local->drills);
}

static void
print_drills(struct driver *driver, struct buffer *out)
{
    drill_print_metrics(((struct local *)driver)->storage.engine, out);
}

/* ---- calls ---- */

static struct error *
call_local(struct driver *driver, struct call *call, const struct method *method,
           const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct local *local = (struct local *)driver;
    return services_run(local->services, SERVICES_ALL_COUNT, call, method, request, reply);
}

static struct error *
stream_local(struct driver *driver, struct call *call, const struct method *method,
             const ProtobufCMessage *request)
{
    return call_local(driver, call, method, request, NULL);
}

static struct ops *
operations_of_local(struct driver *driver)
{
    return ((struct local *)driver)->storage.engine->ops;
}

static void
figures_of_local(struct driver *driver, const struct figures_request *request, struct figures *out)
{
    figures_get(((struct local *)driver)->storage.engine, request, out);
}

static void
join_local(struct driver *driver, struct cluster *cluster)
{
    struct local *local = (struct local *)driver;
    if (local->fetcher)
        return;
    local->fetcher = fetcher_new(cluster, driver->connection, driver->runtime);
    local->mover = mover_new(cluster, driver->connection, local->storage.engine, driver->runtime);
    atomic_store(&local->controller.sender, cluster_sender(cluster));
    local->replicator = replicator_new(cluster, driver->connection, driver->runtime);
    local->nodes = object_nodes_new(cluster, driver->runtime);
    atomic_store(&local->storage.engine->repository_nodes, object_nodes_places(local->nodes));
    engine_join(local->storage.engine, fetcher_data(local->fetcher), mover_moves(local->mover),
                replicator_replicas(local->replicator));
}

/* ---- facts ---- */

struct local_question {
    struct local *local;
    struct call *call;
};

/* The engine's services are asked as those of a third-party driver are. */
static struct error *
ask_own(void *context, bool is_node, const struct method *method, const ProtobufCMessage *request,
        void *reply)
{
    (void)is_node;
    const struct local_question *question = context;
    ProtobufCMessage *message =
        arena_alloc(call_arena(question->call), method->output->sizeof_message);
    protobuf_c_message_init(method->output, message);
    *(ProtobufCMessage **)reply = message;
    return call_local(&question->local->driver, question->call, method, request, message);
}

static void
learn_facts(struct local *local, struct runtime *runtime)
{
    struct call *call = call_new_detached(runtime, 0);
    struct driver_facts *facts = driver_facts_new();
    struct local_question question = {local, call};
    error_free(facts_reader_run(ask_own, &question, facts)); /* these answers cannot fail */
    facts->is_known = facts->is_node_known = facts->is_ready = true;
    driver_set_facts(&local->driver, facts);
    call_free_detached(call);
}

static struct error *
open_local(const struct driver_options *options, struct driver **out)
{
    extern const struct driver_ops driver_local;
    struct local *local = memory_zeroed(sizeof *local);
    driver_init(&local->driver, &driver_local, options);
    arena_init(&local->arena, NULL, 0, SIZE_MAX);
    struct error *error = open_storage(local, options);
    if (!error)
        error = open_drills(local, options);
    if (error) {
        close_local(&local->driver);
        return error;
    }
    learn_facts(local, options->runtime);
    *out = &local->driver;
    return NULL;
}

const struct driver_ops driver_local = {
    .name = "local",
    .speaks_our_ids = true,
    .has_homes = true,
    .check = check,
    .open = open_local,
    .close = close_local,
    .call = call_local,
    .stream = stream_local,
    .operations = operations_of_local,
    .figures = figures_of_local,
    .print_drills = print_drills,
    .join = join_local,
};
