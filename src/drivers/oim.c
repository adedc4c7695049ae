/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver `oim`: volumes of an accelerator, by the controller of this node in the Open
 * Infrastructure Manager; through a registry, or the controller itself. Its settings are in
 * oim_options.h.
 *
 * DESIGN. All but the block device's life is ours: the handlers of csi.v1.Controller and
 * csi.v1.Node run in this process, on a worker each, and ask the controller for the rest. Their
 * number is bounded, each question's time is, and while nobody answers a breaker refuses them, so a
 * registry that hangs costs no other connection anything.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/files.h"
#include "base/memory.h"
#include "base/version.h"
#include "csi/services.h"
#include "drivers/oim_internal.h"
#include "drivers/own_directory.h"
#include "rpc/http2/address.h"
#include "volumes/handle.h"

#define PLUGIN_NAME "oim.skycap.dev"
#define REGISTRY_NAME "component.registry"
#define CONTROLLER_KEY "controllerid"
#define LONGEST_PAUSE_MS 15u /* between attempts to connect; the keeper's pauses grow instead */
#define KEEPALIVE_MS 30000u

extern const struct driver_ops driver_oim;

/* ---- calls ---- */

static struct error *
enter(struct oim_driver *oim)
{
    if (atomic_fetch_add(&oim->calls, 1) < oim->max_calls)
        return NULL;
    atomic_fetch_sub(&oim->calls, 1);
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "connection \"%s\": %" PRId64
                     " calls are under way, as many as may be (max-calls); try again later",
                     oim->connection, oim->max_calls);
}

static struct error *
call_oim(struct driver *driver, struct call *call, const struct method *method,
         const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct oim_driver *oim = (struct oim_driver *)driver;
    const struct csi_service services[] = {
        {&csi_v1_node_service, &oim_node_handlers, oim},
        {&csi_v1_controller_service, &oim_controller_handlers, oim},
    };
    /* What is emulated another driver provisions. */
    size_t count = oim->options.emulation ? 1 : COUNT_OF(services);
    struct error *error = enter(oim);
    if (error)
        return error;
    error = services_run(services, count, call, method, request, reply);
    atomic_fetch_sub(&oim->calls, 1);
    return error;
}

/* ---- facts ---- */

#define SERVICE(name) (UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##name)
#define CONTROLLER(name) (UINT64_C(1) << CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name)
#define NODE(name) (UINT64_C(1) << CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name)

/* What it can do needs nobody's answer: only whether it is ready is asked. */
static void
tell_facts(struct oim_driver *oim)
{
    struct driver_facts *facts = driver_facts_new();
    facts->is_known = facts->is_node_known = true;
    facts->trouble = "it has not been reached yet";
    facts->plugin_name = PLUGIN_NAME;
    facts->plugin_version = SKYCAP_VERSION;
    facts->services = SERVICE(VOLUME_ACCESSIBILITY_CONSTRAINTS);
    facts->node = NODE(STAGE_UNSTAGE_VOLUME) | NODE(GET_VOLUME_STATS) |
                  NODE(SINGLE_NODE_MULTI_WRITER) | NODE(VOLUME_MOUNT_GROUP);
    if (!oim->options.emulation) {
        facts->services |= SERVICE(CONTROLLER_SERVICE);
        facts->controller = CONTROLLER(CREATE_DELETE_VOLUME) | CONTROLLER(LIST_VOLUMES) |
                            CONTROLLER(GET_VOLUME) | CONTROLLER(SINGLE_NODE_MULTI_WRITER);
    }
    facts->node_id = arena_string(&facts->arena, oim->engine.node_id);
    text_map_set(&facts->topology, &facts->arena, CONTROLLER_TOPOLOGY_KEY, facts->node_id);
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
make_directory(const char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return NULL;
    return error_from_errno(errno, "make the directory %s", path);
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
    return make_directory(oim->directory);
}

/* Who must prove what to us: see the rights in docs/oim.md. */
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
open_channel(struct oim_driver *oim)
{
    struct address address;
    struct error *error = address_parse(oim->options.target, &address);
    if (!error && oim->options.tls.is_given)
        error = tls_context_open(&oim->options.tls.files, &oim->tls);
    if (!error && oim->options.is_registry)
        error = metadata_add(&oim->metadata, &oim->arena, CONTROLLER_KEY, oim->options.controller,
                             strlen(oim->options.controller));
    if (error)
        return error;
    struct channel_options options = {
        .tls = oim->tls,
        .tls_name = oim->tls ? expected_name(oim) : NULL,
        .connect_timeout_ms = oim->options.probe_timeout_ms,
        .max_backoff_ms = LONGEST_PAUSE_MS,
        .keepalive_ms = address_is_local(&address) ? 0 : KEEPALIVE_MS,
    };
    oim->end.breaker = &oim->breaker;
    return channel_open(oim->base.runtime, oim->options.target, &options, &oim->end.channel);
}

static struct error *
open_keeper(struct oim_driver *oim)
{
    struct keeper_options options = {
        .connection = oim->connection,
        .driver = &oim->base,
        .controller = &oim->end,
        .node = &oim->end,
        .metadata = &oim->metadata,
        .interval_ms = oim->options.probe_interval_ms,
        .timeout_ms = oim->options.probe_timeout_ms,
        .tls = oim->tls,
        .log = oim->engine.log,
        .check_ready = oim_client_check_ready,
    };
    return keeper_open(&options, &oim->keeper);
}

static void
close_oim(struct driver *driver)
{
    struct oim_driver *oim = (struct oim_driver *)driver;
    keeper_close(oim->keeper);
    channel_close(oim->end.channel);
    breaker_clear(&oim->breaker);
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
    driver_init(&oim->base, &driver_oim, options->runtime);
    arena_init(&oim->arena, NULL, 0, SIZE_MAX);
    breaker_init(&oim->breaker);
    oim->connection = arena_string(&oim->arena, options->connection);
    oim->max_calls = options->max_calls;
    oim->timeout_ms = options->timeout_ms;
    oim->engine.node_id = arena_string(&oim->arena, options->node_id);
    oim->engine.log = options->log;
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
        error = open_channel(oim);
    if (!error) {
        tell_facts(oim);
        error = open_keeper(oim);
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
    .id_of_name = oim_volume_handle,
    .check = check,
    .open = open_oim,
    .close = close_oim,
    .call = call_oim,
};
