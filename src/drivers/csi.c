/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver `csi`: a third-party CSI driver behind its socket, optionally run as our child. Its
 * settings are in csi_options.h.
 *
 * Calls are limited in number (RESOURCE_EXHAUSTED) and in time, and refused at once while the
 * driver does not answer (UNAVAILABLE), so a driver that hangs affects no other connection. Its
 * answers are passed on unchanged, also errors.
 *
 * DESIGN. One or two endpoints (sockets). The monitor probes both at intervals. Only its probes
 * close a breaker, so there is no half-open state that would risk a user's call.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "drivers/child_process.h"
#include "drivers/csi_options.h"
#include "drivers/monitor.h"
#include "rpc/proxy/proxy.h"
#include "rpc/proxy/relay.h"

#define MS_NS UINT64_C(1000000)
#define REPLY_ROOM (8u << 20) /* bytes of one decoded reply */
#define NODE_SERVICE "/csi.v1.Node/"
#define FAIR_NS (500 * MS_NS) /* a shorter deadline says nothing about the server */

extern const struct driver_ops driver_csi;

enum { CONTROLLER, NODE, ENDPOINT_COUNT };

struct csi_driver {
    struct driver base; /* first */
    struct arena arena; /* of the options */
    struct csi_options options;
    uint64_t timeout_ns;
    struct metadata via;
    struct tls_context *tls;
    struct endpoint endpoints[ENDPOINT_COUNT]; /* the second is unused if there is one socket */
    struct endpoint *node;
    struct monitor *monitor;
    struct child_process *process; /* NULL: the driver is not our child */
};

/* ---- limits ---- */

static struct endpoint *
endpoint_for(struct csi_driver *csi, const struct method *method)
{
    bool is_node = strncmp(method->path, NODE_SERVICE, sizeof NODE_SERVICE - 1) == 0;
    return is_node ? csi->node : &csi->endpoints[CONTROLLER];
}

static struct error *
check(struct csi_driver *csi, struct endpoint *endpoint)
{
    return error_wrap(endpoint_check(endpoint), "connection \"%s\"", csi->base.connection);
}

/* NULL: the call may go to `*endpoint`, and `leave` must follow. */
static struct error *
enter(struct csi_driver *csi, const struct method *method, struct endpoint **endpoint)
{
    *endpoint = endpoint_for(csi, method);
    struct error *error = check(csi, *endpoint);
    return error ? error : driver_begin_call(&csi->base);
}

/* Is the caller's deadline too short to blame the server if it passes? */
static bool
is_hurried(const struct csi_driver *csi, const struct call *call)
{
    return call_time_left(call) < (csi->timeout_ns < FAIR_NS ? csi->timeout_ns : FAIR_NS);
}

/* Takes the error and returns the caller's. */
static struct error *
leave(struct csi_driver *csi, struct endpoint *endpoint, bool was_hurried, struct error *error)
{
    driver_end_call(&csi->base);
    bool counts = !was_hurried || !error || error->code != CODE_DEADLINE_EXCEEDED;
    if (counts && endpoint_note(endpoint, error))
        monitor_wake(csi->monitor);
    if (error && !error->from_peer)
        error = error_wrap(error, "connection \"%s\"", csi->base.connection);
    return error;
}

/* Our own, after those of the processes that the call has passed. */
static const struct metadata *
make_via(struct csi_driver *csi, struct call *call, struct metadata *own)
{
    const struct metadata *incoming = call_metadata(call);
    if (!metadata_count(incoming, DRIVER_VIA))
        return &csi->via;
    for (const struct metadata_entry *one = incoming->first; one; one = one->next) {
        if (!strcmp(one->key, DRIVER_VIA))
            metadata_add_bytes(own, call_arena(call), one->key, one->key_size, one->value,
                               one->value_size);
    }
    const struct metadata_entry *ours = csi->via.first;
    metadata_add_bytes(own, call_arena(call), ours->key, ours->key_size, ours->value,
                       ours->value_size);
    return own;
}

/* ---- calls ---- */

static struct error *
csi_call(struct driver *driver, struct call *call, const struct method *method,
         const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct csi_driver *csi = (struct csi_driver *)driver;
    struct endpoint *endpoint;
    struct error *error = enter(csi, method, &endpoint);
    if (error)
        return error;
    struct metadata own = {0};
    struct call_options options = {
        .timeout_ns = csi->timeout_ns,
        .metadata = make_via(csi, call, &own),
        .parent = call_as_parent(call),
        .charge = call_make_room(call, REPLY_ROOM),
    };
    ProtobufCMessage *answer;
    bool was_hurried = is_hurried(csi, call);
    error = channel_call(endpoint->channel, method, request, &options, call_arena(call), &answer);
    if (!error)
        memcpy(reply, answer, method->output->sizeof_message);
    return leave(csi, endpoint, was_hurried, error);
}

struct relayed {
    struct csi_driver *csi; /* shared */
    struct endpoint *endpoint;
    bool was_hurried;
    driver_finish *finish;
    void *context;
};

static struct error *
finish_relay(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct relayed *relayed = context;
    error = leave(relayed->csi, relayed->endpoint, relayed->was_hurried, error);
    error = relayed->finish(call, relayed->context, reply, error);
    driver_release(&relayed->csi->base);
    return error;
}

static struct error *
csi_relay(struct driver *driver, struct call *call, const struct method *method,
          const ProtobufCMessage *request, driver_finish *finish, void *context)
{
    struct csi_driver *csi = (struct csi_driver *)driver;
    struct endpoint *endpoint;
    struct error *error = enter(csi, method, &endpoint);
    if (error)
        return error;
    driver_share(driver);
    struct relayed *relayed = arena_alloc(call_arena(call), sizeof *relayed);
    *relayed = (struct relayed){csi, endpoint, is_hurried(csi, call), finish, context};
    /* The relay passes the call's own metadata on, so only ours is added. */
    struct relay relay = {
        .request = request,
        .finish = finish_relay,
        .context = relayed,
        .metadata = &csi->via,
        .timeout_ns = csi->timeout_ns,
    };
    rpc_relay(call, endpoint->channel, &relay);
    return NULL;
}

/* Not counted against max-calls: such calls may last long, and they hold no thread. */
static struct error *
csi_proxy(struct driver *driver, struct call *call)
{
    struct csi_driver *csi = (struct csi_driver *)driver;
    struct endpoint *endpoint = &csi->endpoints[CONTROLLER];
    struct error *error = check(csi, endpoint);
    if (!error)
        rpc_proxy(call, endpoint->channel);
    return error;
}

static struct error *
pass_messages(struct client_call *from, struct call *to)
{
    struct error *error = NULL;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, REPLY_ROOM);
    for (;;) {
        ProtobufCMessage *message;
        error = client_call_recv(from, &arena, &message);
        if (error || !message)
            return error;
        error = call_send(to, message);
        if (error)
            return error;
        arena_clear(&arena);
    }
}

static struct error *
run_stream(struct client_call *from, struct call *to, const ProtobufCMessage *request)
{
    error_free(client_call_send(from, request)); /* client_call_finish has the error */
    client_call_close_send(from);
    struct error *error = pass_messages(from, to);
    return error ? error : client_call_finish(from);
}

static struct error *
csi_stream(struct driver *driver, struct call *call, const struct method *method,
           const ProtobufCMessage *request)
{
    struct csi_driver *csi = (struct csi_driver *)driver;
    struct endpoint *endpoint;
    struct error *error = enter(csi, method, &endpoint);
    if (error)
        return error;
    struct metadata own = {0};
    /* A stream may last long: only the caller's deadline counts. */
    struct call_options options = {
        .metadata = make_via(csi, call, &own),
        .parent = call_as_parent(call),
    };
    struct client_call *from;
    error = client_call_open(endpoint->channel, method, &options, &from);
    if (!error) {
        error = run_stream(from, call, request);
        client_call_free(from);
    }
    return leave(csi, endpoint, false, error);
}

/* ---- opening and closing ---- */

static struct error *
open_endpoint(struct csi_driver *csi, const char *address, size_t index)
{
    struct endpoint_options options = {
        .address = address,
        .tls = csi->tls,
        .tls_name = csi->options.tls.name,
        .connect_timeout_ms = csi->options.probe_timeout_ms,
    };
    return endpoint_open(&csi->endpoints[index], csi->base.runtime, &options);
}

static struct error *
open_endpoints(struct csi_driver *csi)
{
    const struct csi_options *options = &csi->options;
    struct error *error =
        options->tls.is_given ? tls_context_open(&options->tls.files, &csi->tls) : NULL;
    if (!error)
        error = open_endpoint(csi, options->endpoint, CONTROLLER);
    if (!error && options->node_endpoint)
        error = open_endpoint(csi, options->node_endpoint, NODE);
    csi->node = &csi->endpoints[options->node_endpoint ? NODE : CONTROLLER];
    return error;
}

static struct error *
open_monitor(struct csi_driver *csi, const struct log *log)
{
    struct monitor_options options = {
        .connection = csi->base.connection,
        .driver = &csi->base,
        .controller = &csi->endpoints[CONTROLLER],
        .node = csi->node,
        .metadata = &csi->via,
        .interval_ms = csi->options.probe_interval_ms,
        .timeout_ms = csi->options.probe_timeout_ms,
        .tls = csi->tls,
        .log = log,
    };
    return monitor_open(&options, &csi->monitor);
}

static void
note_program(void *context, const char *trouble)
{
    monitor_note_program(context, trouble);
}

static struct error *
open_process(struct csi_driver *csi, const struct log *log)
{
    struct child_process_options options = {
        .connection = csi->base.connection,
        .command = csi->options.command,
        .environment = &csi->options.environment,
        .endpoint = csi->options.endpoint,
        .changed = note_program,
        .context = csi->monitor,
        .log = log,
    };
    return csi->options.command ? child_process_open(&options, &csi->process) : NULL;
}

static void
csi_close(struct driver *driver)
{
    struct csi_driver *csi = (struct csi_driver *)driver;
    child_process_close(csi->process); /* first: it notifies the monitor */
    monitor_close(csi->monitor);
    for (size_t i = 0; i < ENDPOINT_COUNT; i++)
        endpoint_close(&csi->endpoints[i]);
    runtime_close_tls(driver->runtime, csi->tls);
    driver_clear(driver);
    arena_clear(&csi->arena);
    free(csi);
}

static struct csi_driver *
csi_new(const struct driver_options *options)
{
    struct csi_driver *csi = memory_zeroed(sizeof *csi);
    driver_init(&csi->base, &driver_csi, options);
    if (options->remembered)
        driver_set_facts(&csi->base, driver_facts_copy(options->remembered));
    arena_init(&csi->arena, NULL, 0, SIZE_MAX);
    csi->timeout_ns = options->timeout_ms * MS_NS;
    for (size_t i = 0; i < ENDPOINT_COUNT; i++)
        endpoint_init(&csi->endpoints[i]);
    return csi;
}

static struct error *
csi_open(const struct driver_options *options, struct driver **out)
{
    struct csi_driver *csi = csi_new(options);
    struct error *error = csi_options_read(options->settings, &csi->arena, &csi->options);
    if (!error)
        error = metadata_add(&csi->via, &csi->arena, DRIVER_VIA, options->instance,
                             strlen(options->instance));
    if (!error)
        error = open_endpoints(csi);
    if (!error)
        error = open_monitor(csi, options->log);
    if (!error)
        error = open_process(csi, options->log);
    if (error) {
        csi_close(&csi->base);
        return error;
    }
    *out = &csi->base;
    return NULL;
}

const struct driver_ops driver_csi = {
    .name = "csi",
    .must_ask = true,
    .check = csi_options_check,
    .server = csi_options_server,
    .open = csi_open,
    .close = csi_close,
    .call = csi_call,
    .relay = csi_relay,
    .proxy = csi_proxy,
    .stream = csi_stream,
};
