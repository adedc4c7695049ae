/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a server process: see serve_process.h. */
#include "cli/serve_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "connections/config/repository_files.h"
#include "proto/cluster_store.rpc.h"
#include "proto/csi.rpc.h"
#include "proto/oim.rpc.h"
#include "proto/registry.rpc.h"
#include "rpc/http2/inherited.h"
#include "rpc/services/reflection.h"
#include "velero/host_service.h"

#define GRACE_MS 30000      /* for calls in progress */
#define NODES_GRACE_MS 2000 /* for those that wait for other nodes */

/* ---- server ---- */

static struct error *
listen_everywhere(struct process *process, const struct serve_settings *settings)
{
    struct listen_options local = {.socket_mode = (unsigned)settings->socket_mode};
    struct listen_options remote = {.tls = process->tls};
    struct address address;
    struct error *error = address_parse(settings->endpoint, &address);
    if (!error && !address_is_local(&address))
        error =
            error_new(CODE_INVALID_ARGUMENT,
                      "--endpoint %s: CSI is served on a unix socket, unix:///path/csi.sock; use "
                      "--listen for TCP",
                      settings->endpoint);
    if (!error)
        error = serve_settings_make_default_directory(settings);
    if (!error)
        error = server_listen(process->server, settings->endpoint, &local);
    for (size_t i = 0; !error && i < settings->listen.count; i++)
        error = error_wrap(server_listen(process->server, settings->listen.items[i], &remote),
                           "--listen");
    return error;
}

static struct error *
open_registration(struct process *process, const struct serve_settings *settings)
{
    struct serve_registration_options options = {
        .directory = settings->registration_directory,
        .driver_name = settings->driver_name,
        .endpoint = settings->endpoint,
        .router = process->router,
        .runtime = process->runtime,
        .log = &process->log,
    };
    if (!settings->registration_directory)
        return NULL;
    return error_wrap(serve_registration_open(&options, &process->registration),
                      "--kubelet-registration-dir");
}

static struct error *
open_store_tls(struct process *process, const struct serve_settings *settings)
{
    if (!serve_settings_have_tls(&settings->store_tls))
        return NULL;
    return tls_context_open(&settings->store_tls, &process->store_tls);
}

/* ---- a node of a cluster ---- */

static void
append_text(struct buffer *out, const char *name, const char *text)
{
    if (!text)
        return;
    buffer_print(out, ",");
    json_append_string(out, name, strlen(name));
    buffer_print(out, ":");
    json_append_string(out, text, strlen(text));
}

static void
append_number(struct buffer *out, const char *name, unsigned long number)
{
    if (number)
        buffer_print(out, ",\"%s\":%lu", name, number);
}

/*
 * What --backend and the like say, as the file of a connection. In a cluster there is always a
 * router, because volumes are also elsewhere.
 */
static struct error *
print_connection(const struct serve_settings *settings, struct buffer *out)
{
    const struct storage_options *storage = &settings->storage;
    char directory[PATH_MAX];
    struct error *error = storage_find_directory(storage->directory, directory);
    if (error)
        return error;
    buffer_print(out, "{\"driver\":\"local\",\"default\":true,\"options\":{\"data\":");
    json_append_string(out, directory, strlen(directory));
    for (size_t i = 0; i < storage->backends.count; i++) {
        buffer_print(out, i ? "," : ",\"backend\":[");
        json_append_string(out, storage->backends.items[i], strlen(storage->backends.items[i]));
    }
    buffer_print(out, storage->backends.count ? "]" : "");
    append_text(out, "pool-device", storage->pool_device);
    append_text(out, "pool-size", storage->pool_size);
    append_number(out, "max-volumes", settings->max_volumes);
    append_number(out, "overprovisioning", settings->overprovisioning);
    buffer_print(out, "%s%s}}", storage->pool_is_allocated ? ",\"pool-preallocate\":true" : "",
                 storage->may_switch_quotas_on ? ",\"quotas\":true" : "");
    return NULL;
}

static struct error *
read_topology(const struct text_list *given, struct arena *arena, struct text_map *out)
{
    for (size_t i = 0; i < given->count; i++) {
        const char *equals = strchr(given->items[i], '=');
        if (!equals || equals == given->items[i] || !equals[1])
            return error_new(CODE_INVALID_ARGUMENT, "--topology %s: give it as KEY=VALUE",
                             given->items[i]);
        size_t size = (size_t)(equals - given->items[i]);
        text_map_set(out, arena, arena_copy(arena, given->items[i], size), equals + 1);
    }
    return NULL;
}

static struct error *
describe_cluster(struct process *process, const struct serve_settings *settings)
{
    process->cluster = (struct router_cluster){
        .registry = settings->oim.registry,
        .address = settings->advertise,
        .renew_ms = (uint32_t)settings->registry_delay_s * 1000,
        .transfer_rate = (uint64_t)settings->transfer_bytes_per_s,
        .tls = process->tls,
    };
    if (asprintf(&process->cluster_store, "registry://%s", settings->oim.registry) < 0)
        memory_exhausted();
    struct error *error =
        read_topology(&settings->topology, &process->arena, &process->cluster.topology);
    if (!error && !settings->connections)
        error = print_connection(settings, &process->connection);
    return error;
}

/* ---- storage ---- */

static struct error *
open_router(struct process *process, const struct serve_settings *settings)
{
    bool has_cluster = serve_settings_have_cluster(settings);
    /* A registry is reached with the certificate of this process, unless there is another. */
    bool is_registry =
        settings->store_url ? serve_settings_has_registry_store(settings) : has_cluster;
    struct error *error = has_cluster ? describe_cluster(process, settings) : NULL;
    if (!error)
        error = open_store_tls(process, settings);
    if (error)
        return error;
    struct router_options options = {
        .directory = settings->connections,
        .only = buffer_text(&process->connection),
        .cluster = has_cluster ? &process->cluster : NULL,
        .data_directory = settings->storage.directory,
        .driver_name = settings->driver_name,
        .node_id = settings->node_id,
        .repositories = process->repositories.find ? &process->repositories : NULL,
        .is_node = settings->roles & ROLE_NODE,
        .store_url = settings->store_url ? settings->store_url : process->cluster_store,
        .store_tls = process->store_tls ? process->store_tls
                     : is_registry      ? process->tls
                                        : NULL,
        .advertises_csi_1_13 = strcmp(settings->csi_version, "1.13") == 0,
        .runtime = process->runtime,
        .log = &process->log,
    };
    return router_open(&options, &process->router);
}

static struct error *
open_repositories(struct process *process, const struct serve_settings *settings)
{
    if (!settings->repositories)
        return NULL;
    char directory[PATH_MAX];
    struct error *error = repository_files_open(settings->repositories, &process->repositories);
    if (!error)
        error = storage_find_directory(settings->storage.directory, directory);
    if (!error)
        error = repository_roster_open(directory, settings->node_id, &process->repositories.roster);
    process->repositories.allows_commands = settings->allows_drill_commands;
    return error_wrap(error, "--repositories");
}

static struct error *
open_storage(struct process *process, const struct serve_settings *settings)
{
    if (!(settings->roles & ROLES_OF_CSI))
        return NULL;
    struct error *error = open_repositories(process, settings);
    if (error)
        return error;
    if (settings->connections || serve_settings_have_cluster(settings))
        return open_router(process, settings);
    struct storage_options options = settings->storage;
    options.node_id = settings->node_id;
    options.log = &process->log;
    options.repositories = process->repositories.find ? &process->repositories : NULL;
    error = storage_open(&options, &process->storage);
    if (error)
        return error;
    struct engine *engine = process->storage.engine;
    process->controller = (struct controller){
        .engine = engine,
        .max_volumes_per_node = settings->max_volumes,
        .advertises_csi_1_13 = strcmp(settings->csi_version, "1.13") == 0,
        .overprovisioning_percent = (unsigned)settings->overprovisioning,
    };
    process->identity =
        (struct identity){settings->driver_name, settings->node_id, &process->controller};
    drill_sweep(engine);
    return process->repositories.find ? drill_schedule_open(engine, NULL, &process->drills) : NULL;
}

static struct error *
open_registry_store(struct process *process, const struct serve_settings *settings)
{
    char directory[PATH_MAX], url[PATH_MAX + 32];
    struct error *error = open_store_tls(process, settings);
    if (!error && !settings->store_url)
        error = storage_find_directory(settings->storage.directory, directory);
    if (error)
        return error;
    struct store_options options = {process->runtime, process->store_tls};
    snprintf(url, sizeof url, "sqlite:%s/registry", directory);
    return error_wrap(store_open(settings->store_url ? settings->store_url : url, &options,
                                 &process->registry_store),
                      "the registry's store");
}

static const char *const *
list_readers(struct process *process, const struct text_list *asked)
{
    static const char *const usual[] = {"host.*", "controller.*", "node.*", "user.*", NULL};
    if (!asked->count)
        return usual;
    process->readers = memory_zeroed((asked->count + 1) * sizeof *process->readers);
    memcpy(process->readers, asked->items, asked->count * sizeof *process->readers);
    return process->readers;
}

static struct error *
open_registry(struct process *process, const struct serve_settings *settings)
{
    bool has_controller = settings->roles & ROLE_OIM_CONTROLLER;
    if (!(settings->roles & ROLE_REGISTRY))
        return NULL;
    struct error *error = open_registry_store(process, settings);
    if (error)
        return error;
    struct registry_options options = {
        .store = process->registry_store,
        .readers = list_readers(process, &settings->readers),
        .is_open = settings->insecure,
        .own_controller = has_controller ? settings->oim.id : NULL,
        .tls = process->tls,
        .runtime = process->runtime,
        .log = &process->log,
    };
    return registry_open(&options, &process->registry);
}

static struct error *
open_oim_controller(struct process *process, const struct serve_settings *settings)
{
    struct oim_controller_options options = settings->oim;
    if (!(settings->roles & ROLE_OIM_CONTROLLER))
        return NULL;
    options.tls = process->tls;
    options.runtime = process->runtime;
    options.log = &process->log;
    return oim_controller_open(&options, &process->oim_controller);
}

/* Listens before the rest is opened: a wrong address fails at once, and early clients wait. */
static struct error *
open_server(struct process *process, const struct serve_settings *settings)
{
    process->server = server_new(
        process->runtime, &(struct server_options){.max_message_bytes = settings->max_message_bytes,
                                                   .accept_later = true});
    struct error *error = listen_everywhere(process, settings);
    if (!error)
        error = serve_pages_open(process, settings);
    return error ? error : inherited_check();
}

/* For grpc.health: the registry, and the process as a whole, once the entries have been read. */
static bool
can_be_used(void *context, const char *service)
{
    bool needs_registry = !service[0] || strcmp(service, oim_v0_registry_service.name) == 0 ||
                          strcmp(service, skycap_v1_registry_service.name) == 0 ||
                          strcmp(service, skycap_v1_cluster_store_service.name) == 0;
    struct error *error AUTO(error_cleanup) =
        needs_registry ? serve_pages_check_registry(context) : NULL;
    return !error;
}

/* Where hosts of Velero's plugins report. NULL: there is no storage here. */
static struct ops *
find_operations(const struct process *process)
{
    if (process->router)
        return router_own_operations(process->router);
    return process->storage.engine ? process->storage.engine->ops : NULL;
}

static struct error *
resume_host_operations(const struct process *process)
{
    struct ops *ops = find_operations(process);
    return ops ? host_service_resume(ops) : NULL;
}

static void
add_csi(struct process *process, unsigned sides)
{
    host_service_add(process->server, find_operations(process));
    if (process->router) {
        router_add(process->server, process->router, sides);
        return;
    }
    struct csi_service services[SERVICES_ALL_COUNT];
    services_list(&process->identity, services);
    for (size_t i = 0; i < COUNT_OF(services); i++)
        if (services_is_of(services[i].service, sides))
            server_add_service(process->server, services[i].service, services[i].handlers,
                               services[i].context);
}

static void
add_services(struct process *process, const struct serve_settings *settings)
{
    unsigned sides = (settings->roles & ROLE_NODE ? SERVICES_NODE : 0) |
                     (settings->roles & ROLE_CONTROLLER ? SERVICES_CONTROLLER : 0);
    process->health = health_new(process->server);
    health_set_check(process->health, can_be_used, process);
    reflection_add(process->server);
    if (sides) {
        add_csi(process, sides);
        server_reserve_for(process->server, CSI_V1_IDENTITY_PROBE); /* livenessprobe asks it */
    }
    if (process->registry)
        registry_add(process->registry, process->server);
    if (process->oim_controller)
        oim_controller_add(process->oim_controller, process->server);
    process->guard = (struct serve_guard){
        .registry = process->registry,
        .own_controller = process->oim_controller ? settings->oim.id : NULL,
        .is_in_cluster = serve_settings_have_cluster(settings),
        .is_open = settings->insecure,
    };
    if (process->registry || process->oim_controller || settings->listen.count)
        serve_guard_add(&process->guard, process->server);
}

struct error *
serve_process_open(struct process *process, const struct serve_settings *settings)
{
    struct error *error = serve_settings_init_log(&process->log);
    arena_init(&process->arena, NULL, 0, SIZE_MAX);
    log_never_wait(&process->log, &process->log_losses);
    log_collect(&process->log, &process->log_batch);
    process->driver_name = settings->driver_name;
    process->metrics_volumes = settings->metrics_volumes;
    if (!error && serve_settings_have_tls(&settings->tls))
        error = tls_context_open(&settings->tls, &process->tls);
    if (!error)
        error = runtime_open(&(struct runtime_options){.log = &process->log}, &process->runtime);
    if (!error)
        error = open_server(process, settings);
    if (!error)
        error = open_storage(process, settings);
    if (!error)
        error = resume_host_operations(process);
    if (!error)
        error = open_registry(process, settings);
    if (!error)
        error = open_oim_controller(process, settings);
    if (error)
        return error;
    add_services(process, settings);
    server_begin(process->server);
    if (process->router)
        router_begin(process->router);
    if (process->oim_controller)
        oim_controller_begin(process->oim_controller);
    serve_pages_begin(process);
    return open_registration(process, settings);
}

void
serve_process_stop(struct process *process)
{
    health_shut_down(process->health);
    api_stop(process->api); /* its streams would be waited for */
    if (process->oim_controller)
        oim_controller_stop(process->oim_controller);
    if (process->registry)
        registry_stop(process->registry);
    if (process->router)
        router_stop(process->router);
    else if (process->storage.engine)
        engine_stop(process->storage.engine);
    if (process->router && !server_stop(process->server, NODES_GRACE_MS))
        router_stop_calls(process->router);
    server_drain(process->server, GRACE_MS - NODES_GRACE_MS);
}

void
serve_process_close(struct process *process)
{
    serve_pages_close(process);
    serve_registration_close(process->registration);
    server_free(process->server);
    health_free(process->health);
    oim_controller_close(process->oim_controller);
    store_stop(process->registry_store);
    registry_close(process->registry);
    free(process->readers);
    store_close(process->registry_store);
    router_close(process->router);
    runtime_close(process->runtime);
    drill_schedule_close(process->drills);
    storage_close(&process->storage);
    repository_roster_close(process->repositories.roster);
    tls_context_close(process->tls);
    tls_context_close(process->store_tls);
    free(process->cluster_store);
    buffer_clear(&process->connection);
    arena_clear(&process->arena);
    log_end_batch(&process->log);
}
