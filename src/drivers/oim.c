/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver `oim`: volumes of an accelerator, served by this node's controller of the Open
 * Infrastructure Manager, directly or through a registry. Its settings are in oim_options.h.
 *
 * DESIGN. The handlers of csi.v1.Controller and csi.v1.Node run in this process, each on a worker;
 * only the block devices are the controller's. Calls to it are limited in number and in time, and
 * refused by a breaker while it does not answer, so a registry that hangs affects no other
 * connection.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/version.h"
#include "csi/ids.h"
#include "csi/services.h"
#include "drivers/oim_internal.h"
#include "drivers/own_directory.h"
#include "registry/client/registry_name.h"
#include "volumes/handle.h"

#define PLUGIN_NAME "oim.skycap.dev"
#define CONTROLLER_KEY "controllerid"

extern const struct driver_ops driver_oim;

/* ---- calls ---- */

static struct error *
call_oim(struct driver *driver, struct call *call, const struct method *method,
         const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct oim_driver *oim = (struct oim_driver *)driver;
    const struct csi_service services[] = {
        {&csi_v1_node_service, &oim_node_handlers, oim},
        {&csi_v1_controller_service, &oim_controller_handlers, oim},
        {&skycap_v1_inventory_service, &oim_inventory_handlers, oim},
    };
    /* Emulated volumes are provisioned by another driver. */
    size_t count = oim->options.emulation ? 1 : COUNT_OF(services);
    struct error *error = driver_begin_call(driver);
    if (error)
        return error;
    error = services_run(services, count, call, method, request, reply);
    driver_end_call(driver);
    return error;
}

/* ---- facts ---- */

#define SERVICE(name) (UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##name)
#define CONTROLLER(name) (UINT64_C(1) << CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name)
#define NODE(name) (UINT64_C(1) << CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name)

void
oim_set_capabilities(struct driver_facts *facts, bool is_emulation)
{
    facts->plugin_name = PLUGIN_NAME;
    facts->plugin_version = SKYCAP_VERSION;
    facts->services = SERVICE(VOLUME_ACCESSIBILITY_CONSTRAINTS);
    facts->node = NODE(STAGE_UNSTAGE_VOLUME) | NODE(GET_VOLUME_STATS) |
                  NODE(SINGLE_NODE_MULTI_WRITER) | NODE(VOLUME_MOUNT_GROUP);
    if (is_emulation)
        return;
    facts->services |= SERVICE(CONTROLLER_SERVICE);
    facts->controller = CONTROLLER(CREATE_DELETE_VOLUME) | CONTROLLER(LIST_VOLUMES) |
                        CONTROLLER(GET_VOLUME) | CONTROLLER(SINGLE_NODE_MULTI_WRITER);
}

/* The capabilities are fixed; the monitor only checks whether the controller answers. */
static void
set_facts(struct oim_driver *oim)
{
    struct driver_facts *facts = driver_facts_new();
    facts->is_known = facts->is_node_known = true;
    facts->trouble = "it has not been reached yet";
    oim_set_capabilities(facts, oim->options.emulation != NULL);
    facts->node_id = arena_string(&facts->arena, oim->engine.node_id);
    text_map_set(&facts->topology, &facts->arena, IDS_TOPOLOGY_NODE, facts->node_id);
    driver_set_facts(&oim->base, facts);
}

/* ---- opening and closing ---- */

static struct error *
check(const struct setting *settings)
{
    struct oim_options options;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return oim_options_read(settings, &arena, &options);
}

static struct error *
open_home(struct oim_driver *oim, const struct driver_options *options)
{
    const char *own;
    struct error *error = own_directory_find(options, &oim->arena, &own);
    if (!error)
        error = oim_home_open(own, &oim->home);
    if (error)
        return error;
    oim->directory = arena_print(&oim->arena, "%s/devices", own);
    oim->engine.store = oim->home->store;
    return files_make_path(oim->directory);
}

/* The name that the server's certificate must have; see docs/oim.md. */
static const char *
expected_name(struct oim_driver *oim)
{
    if (oim->options.tls.name)
        return oim->options.tls.name;
    return oim->options.is_registry
               ? REGISTRY_NAME
               : arena_print(&oim->arena, "controller.%s", oim->options.controller);
}

static struct error *
open_endpoint(struct oim_driver *oim)
{
    const struct oim_options *options = &oim->options;
    struct error *error = NULL;
    if (options->tls.is_given)
        error = tls_context_open(&options->tls.files, &oim->tls);
    if (!error && options->is_registry)
        error = metadata_add(&oim->metadata, &oim->arena, CONTROLLER_KEY, options->controller,
                             strlen(options->controller));
    struct endpoint_options endpoint = {
        .address = options->target,
        .tls = oim->tls,
        .tls_name = oim->tls ? expected_name(oim) : NULL,
        .connect_timeout_ms = options->probe_timeout_ms,
    };
    return error ? error : endpoint_open(&oim->endpoint, oim->base.runtime, &endpoint);
}

static struct error *
open_monitor(struct oim_driver *oim)
{
    struct monitor_options options = {
        .connection = oim->base.connection,
        .driver = &oim->base,
        .controller = &oim->endpoint,
        .node = &oim->endpoint,
        .metadata = &oim->metadata,
        .interval_ms = oim->options.probe_interval_ms,
        .timeout_ms = oim->options.probe_timeout_ms,
        .tls = oim->tls,
        .log = oim->engine.log,
        .check_ready = oim_client_check_ready,
    };
    return monitor_open(&options, &oim->monitor);
}

static void
close_oim(struct driver *driver)
{
    struct oim_driver *oim = (struct oim_driver *)driver;
    monitor_close(oim->monitor);
    endpoint_close(&oim->endpoint);
    runtime_close_tls(driver->runtime, oim->tls);
    oim_home_close(oim->home);
    driver_clear(driver);
    arena_clear(&oim->arena);
    free(oim);
}

static struct oim_driver *
new_oim(const struct driver_options *options)
{
    struct oim_driver *oim = memory_zeroed(sizeof *oim);
    driver_init(&oim->base, &driver_oim, options);
    arena_init(&oim->arena, NULL, 0, SIZE_MAX);
    endpoint_init(&oim->endpoint);
    oim->timeout_ms = options->timeout_ms;
    oim->engine.node_id = arena_string(&oim->arena, options->node_id);
    oim->engine.log = options->log;
    oim->is_in_cluster = options->is_in_cluster;
    handle_print_home(options->node_id, oim->own_home);
    handle_start_clock(&oim->engine, 0);
    if (files_read_line("/proc/sys/kernel/random/boot_id", oim->boot_id, sizeof oim->boot_id) != 0)
        oim->boot_id[0] = '\0';
    return oim;
}

static struct error *
open_oim(const struct driver_options *options, struct driver **out)
{
    struct oim_driver *oim = new_oim(options);
    struct error *error = oim_options_read(options->settings, &oim->arena, &oim->options);
    if (!error && !oim->options.controller)
        oim->options.controller = oim->engine.node_id;
    if (!error)
        error = open_home(oim, options);
    if (!error)
        error = open_endpoint(oim);
    if (!error) {
        set_facts(oim);
        error = open_monitor(oim);
    }
    if (error) {
        close_oim(&oim->base);
        return error;
    }
    *out = &oim->base;
    return NULL;
}

const struct driver_ops driver_oim = {
    .name = "oim",
    .has_homes = true,
    .id_of_name = oim_volume_handle,
    .check = check,
    .server = oim_options_server,
    .open = open_oim,
    .close = close_oim,
    .call = call_oim,
};
