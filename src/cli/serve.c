/* SPDX-License-Identifier: Apache-2.0 */
/* skycap serve: the server process, from flags to SIGTERM. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/options.h"
#include "connections/front.h"
#include "csi/registration.h"
#include "csi/services.h"
#include "rpc/health.h"
#include "rpc/reflection.h"
#include "rpc/runtime.h"
#include "rpc/server.h"
#include "volumes/storage.h"
#include "web/http.h"

#define DEFAULT_ENDPOINT "unix:///run/skycap/csi.sock"
#define DEFAULT_DATA "/var/lib/skycap"
#define GRACE_MS 30000
#define RELOAD_SECONDS 10

struct settings {
    const char *endpoint;
    struct text_list listen;
    struct storage_options storage;
    const char *node_id;
    const char *driver_name;
    const char *csi_version;
    const char *registration_directory;
    const char *connections;
    const char *http;
    struct tls_options tls;
    unsigned long socket_mode;
    const char *log_level;
    const char *log_format;
    unsigned long max_message_bytes;
    unsigned long max_volumes;
    bool insecure;
    char host_name[256];
};

/* All that a serving process is made of, in the order in which it is made. */
struct process {
    struct log log;
    struct log_losses log_losses;
    struct storage storage;
    struct identity identity;
    struct controller controller;
    struct front *front; /* with --connections: instead of the three before */
    struct tls_context *tls;
    struct runtime *runtime;
    struct server *server;
    struct server *kubelet_server; /* for its registration; NULL: not asked for */
    struct registration registration;
    char csi_path[108]; /* of the CSI socket, for the kubelet */
    struct health *health;
    struct http *http;
    struct http_page pages[2];
};

/* ---- flags ---- */

static struct error *
read_flags(struct settings *s, int count, char **arguments, bool *helped)
{
    const struct option table[] = {
        {"endpoint", 0, "ADDR", OPTION_TEXT, &s->endpoint,
         "CSI socket; default $CSI_ENDPOINT, or " DEFAULT_ENDPOINT},
        {"listen", 0, "HOST:PORT", OPTION_LIST, &s->listen,
         "also serve here, with mutual TLS; may be given several times"},
        {"data", 0, "DIR", OPTION_TEXT, &s->storage.directory,
         "where volumes and state live, made if missing; default " DEFAULT_DATA},
        {"backend", 0, "NAME", OPTION_LIST, &s->storage.backends,
         "btrfs, dir, memory, or auto: the best that works in --data; default auto; may be given "
         "several times, the first for volumes that name none"},
        {"connections", 0, "DIR", OPTION_TEXT, &s->connections,
         "serve the storage systems that the files NAME.yaml here describe, live; see "
         "docs/connections.md"},
        {"pool-size", 0, "SIZE", OPTION_TEXT, &s->storage.pool_size,
         "of the btrfs that is made where --data cannot copy on write; default: nine tenths of "
         "the disk"},
        {"quotas", 0, NULL, OPTION_FLAG, &s->storage.may_switch_quotas_on,
         "switch quotas on if --data is on a btrfs of yours; older kernels cannot mount it then"},
        {"max-volumes", 0, "N", OPTION_NUMBER, &s->max_volumes,
         "volumes that may be attached to this node; default: any number"},
        {"node-id", 0, "ID", OPTION_TEXT, &s->node_id, "this node's name; default: the host name"},
        {"driver-name", 0, "NAME", OPTION_TEXT, &s->driver_name,
         "CSI plugin name; default csi.skycap.dev"},
        {"csi-version", 0, "1.12|1.13", OPTION_TEXT, &s->csi_version,
         "newest capabilities to tell; default 1.12, which today's orchestrators speak"},
        {"kubelet-registration-dir", 0, "DIR", OPTION_TEXT, &s->registration_directory,
         "register with the kubelet here, usually /var/lib/kubelet/plugins_registry"},
        {"http", 0, "HOST:PORT", OPTION_TEXT, &s->http, "serve /metrics and /healthz here"},
        {"tls-ca", 0, "FILE", OPTION_TEXT, &s->tls.ca_file,
         "PEM certificates that peers must be signed by"},
        {"tls-cert", 0, "FILE", OPTION_TEXT, &s->tls.certificate_file, "our certificate, PEM"},
        {"tls-key", 0, "FILE", OPTION_TEXT, &s->tls.key_file, "its private key, PEM"},
        {"insecure", 0, NULL, OPTION_FLAG, &s->insecure, "serve --listen without TLS"},
        {"socket-mode", 0, "OCTAL", OPTION_OCTAL, &s->socket_mode,
         "permissions of the CSI socket; default 0600"},
        {"max-message-bytes", 0, "N", OPTION_NUMBER, &s->max_message_bytes,
         "largest message that is taken; default 4194304"},
        {"log-level", 0, "LEVEL", OPTION_TEXT, &s->log_level,
         "debug, info, warn or error; default info"},
        {"log-format", 0, "FORMAT", OPTION_TEXT, &s->log_format, "text or json; default text"},
    };
    const struct options options = {
        .usage = "skycap serve [options]",
        .summary = "Serves CSI and the rest on a unix socket, and on TCP where asked. Certificates "
                   "are read\n"
                   "again when their files change. SIGTERM ends it after the calls that run.",
        .table = table,
        .count = COUNT_OF(table),
    };
    int rest;
    struct error *error = options_parse(&options, count, arguments, &rest, helped);
    if (!error && !*helped && rest < count)
        error = error_new(CODE_INVALID_ARGUMENT,
                          "unexpected argument \"%s\" (see skycap serve --help)", arguments[rest]);
    return error;
}

static void
set_defaults(struct settings *settings)
{
    if (!settings->endpoint)
        settings->endpoint = getenv("CSI_ENDPOINT");
    if (!settings->endpoint || !settings->endpoint[0])
        settings->endpoint = DEFAULT_ENDPOINT;
    if (!settings->storage.directory)
        settings->storage.directory = DEFAULT_DATA;
    if (!settings->csi_version)
        settings->csi_version = "1.12";
    if (!settings->driver_name)
        settings->driver_name = "csi.skycap.dev";
    if (!settings->log_level)
        settings->log_level = "info";
    if (!settings->log_format)
        settings->log_format = "text";
    if (!settings->node_id) {
        if (gethostname(settings->host_name, sizeof settings->host_name - 1) != 0)
            settings->host_name[0] = '\0';
        settings->node_id = settings->host_name;
    }
}

static bool
wants_tls(const struct settings *settings)
{
    return settings->tls.ca_file || settings->tls.certificate_file || settings->tls.key_file;
}

static struct error *
check_settings(const struct settings *settings)
{
    bool all_tls =
        settings->tls.ca_file && settings->tls.certificate_file && settings->tls.key_file;
    size_t id_size = strlen(settings->node_id);
    if (wants_tls(settings) && !all_tls)
        return error_new(CODE_INVALID_ARGUMENT, "--tls-ca, --tls-cert and --tls-key go together");
    if (settings->listen.count && !wants_tls(settings) && !settings->insecure)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--listen needs --tls-ca, --tls-cert and --tls-key, or --insecure");
    if (settings->insecure && wants_tls(settings))
        return error_new(CODE_INVALID_ARGUMENT, "--insecure and certificates exclude each other");
    if (id_size == 0 || id_size > 128)
        return error_new(CODE_INVALID_ARGUMENT, "--node-id must have 1 to 128 characters");
    if (strcmp(settings->csi_version, "1.12") != 0 && strcmp(settings->csi_version, "1.13") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "--csi-version: 1.12 or 1.13");
    if (settings->connections && settings->storage.backends.count)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--connections and --backend exclude each other: name the back end in the "
                         "file of a connection with `driver: local`");
    if (settings->socket_mode > 0777)
        return error_new(CODE_INVALID_ARGUMENT, "--socket-mode: 0000 to 0777");
    if (settings->max_message_bytes > UINT32_MAX / 2)
        return error_new(CODE_INVALID_ARGUMENT, "--max-message-bytes: at most %u", UINT32_MAX / 2);
    return identity_check_name(settings->driver_name);
}

static struct error *
init_log(struct log *log, const struct settings *settings)
{
    *log = (struct log){.fd = STDERR_FILENO, .json = strcmp(settings->log_format, "json") == 0};
    if (!log->json && strcmp(settings->log_format, "text") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "--log-format: \"%s\" is neither text nor json",
                         settings->log_format);
    return error_wrap(log_parse_level(settings->log_level, &log->level), "--log-level");
}

/* ---- pages ---- */

static int
print_metrics(void *context, struct buffer *body)
{
    struct process *process = context;
    buffer_print(body,
                 "# HELP skycap_info The running program.\n# TYPE skycap_info gauge\n"
                 "skycap_info{version=\"%s\",driver=\"%s\"} 1\n",
                 SKYCAP_VERSION, process->identity.driver_name);
    runtime_print_metrics(process->runtime, body);
    if (process->front)
        front_print_metrics(process->front, body);
    return 200;
}

/* As Probe says it. */
static int
print_health(void *context, struct buffer *body)
{
    struct process *process = context;
    struct arena arena AUTO(arena_clear);
    const char *degraded = "";
    arena_init(&arena, NULL, 0, SIZE_MAX);
    bool is_ready = !process->front || front_is_ready(process->front, &arena, &degraded);
    buffer_append_text(body, is_ready ? "ok\n" : "not ready\n");
    if (degraded[0])
        buffer_print(body, "degraded: %s\n", degraded);
    return is_ready ? 200 : 503;
}

/* ---- the process ---- */

static struct error *
listen_everywhere(struct process *process, const struct settings *settings)
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
        error = server_listen(process->server, settings->endpoint, &local);
    for (size_t i = 0; !error && i < settings->listen.count; i++)
        error = server_listen(process->server, settings->listen.items[i], &remote);
    return error;
}

/* The kubelet watches the directory for sockets. */
static struct error *
open_registration(struct process *process, const struct settings *settings)
{
    struct address address;
    char socket[300];
    if (!settings->registration_directory)
        return NULL;
    struct error *error = address_parse(settings->endpoint, &address);
    if (error)
        return error;
    snprintf(process->csi_path, sizeof process->csi_path, "%s", address.path);
    process->registration =
        (struct registration){settings->driver_name, process->csi_path, &process->log};
    process->kubelet_server = server_new(process->runtime, &(struct server_options){0});
    registration_add(process->kubelet_server, &process->registration);
    snprintf(socket, sizeof socket, "unix://%s/%s-reg.sock", settings->registration_directory,
             settings->driver_name);
    return error_wrap(server_listen(process->kubelet_server, socket, &(struct listen_options){0}),
                      "--kubelet-registration-dir");
}

static struct error *
open_http(struct process *process, const struct settings *settings)
{
    if (!settings->http)
        return NULL;
    process->pages[0] = (struct http_page){"/metrics", "text/plain; version=0.0.4; charset=utf-8",
                                           print_metrics, process};
    process->pages[1] =
        (struct http_page){"/healthz", "text/plain; charset=utf-8", print_health, process};
    struct http_options options = {settings->http, process->pages, COUNT_OF(process->pages),
                                   &process->log};
    return http_open(&options, &process->http);
}

static struct error *
open_front(struct process *process, const struct settings *settings)
{
    struct front_options options = {
        .directory = settings->connections,
        .data_directory = settings->storage.directory,
        .driver_name = settings->driver_name,
        .node_id = settings->node_id,
        .tells_1_13 = strcmp(settings->csi_version, "1.13") == 0,
        .runtime = process->runtime,
        .log = &process->log,
    };
    return front_open(&options, &process->front);
}

static struct error *
open_storage(struct process *process, const struct settings *settings)
{
    if (settings->connections)
        return open_front(process, settings);
    struct storage_options options = settings->storage;
    options.node_id = settings->node_id;
    options.log = &process->log;
    struct error *error = storage_open(&options, &process->storage);
    if (error)
        return error;
    struct engine *engine = process->storage.engine;
    process->controller = (struct controller){engine, settings->max_volumes,
                                              strcmp(settings->csi_version, "1.13") == 0};
    process->identity =
        (struct identity){settings->driver_name, settings->node_id, &process->controller};
    return NULL;
}

/* The addresses are taken first: a mistake in them costs nothing, and who comes early waits. */
static struct error *
open_server(struct process *process, const struct settings *settings)
{
    process->server = server_new(
        process->runtime,
        &(struct server_options){.max_message_bytes = settings->max_message_bytes, .waits = true});
    struct error *error = listen_everywhere(process, settings);
    return error ? error : open_http(process, settings);
}

static void
add_services(struct process *process)
{
    process->health = health_new(process->server);
    reflection_add(process->server);
    if (process->front) {
        front_add(process->front, process->server);
        return;
    }
    struct csi_service services[SERVICES_ALL_COUNT];
    services_list(&process->identity, services);
    for (size_t i = 0; i < COUNT_OF(services); i++)
        server_add_service(process->server, services[i].service, services[i].handlers,
                           services[i].context);
}

static struct error *
open_process(struct process *process, const struct settings *settings)
{
    struct error *error = init_log(&process->log, settings);
    log_never_wait(&process->log, &process->log_losses);
    if (!error && wants_tls(settings))
        error = tls_context_open(&settings->tls, &process->tls);
    if (!error)
        error = runtime_open(&(struct runtime_options){.log = &process->log}, &process->runtime);
    if (!error)
        error = open_server(process, settings);
    if (!error)
        error = open_storage(process, settings);
    if (error)
        return error;
    add_services(process);
    server_begin(process->server);
    return open_registration(process, settings);
}

static void
close_process(struct process *process)
{
    http_close(process->http);
    server_free(process->kubelet_server);
    server_free(process->server);
    health_free(process->health);
    front_close(process->front);
    runtime_close(process->runtime);
    storage_close(&process->storage);
    tls_context_close(process->tls);
}

static void
log_start(const struct process *process, const struct settings *settings)
{
    char text[300];
    const struct address *address;
    for (size_t i = 0; (address = server_address(process->server, i)); i++) {
        address_print(address, text, sizeof text);
        log_info(&process->log, "listening", LOG_TEXT("address", text));
    }
    if (process->http)
        log_info(&process->log, "serving metrics", LOG_NUMBER("port", http_port(process->http)));
    log_info(&process->log, "ready", LOG_TEXT("version", SKYCAP_VERSION),
             LOG_TEXT("driver", settings->driver_name), LOG_TEXT("node", settings->node_id));
}

static void
reload_certificates(struct process *process)
{
    bool changed = false;
    if (!process->tls)
        return;
    struct error *error AUTO(error_cleanup) =
        runtime_reload_tls(process->runtime, process->tls, &changed);
    if (error)
        log_error(&process->log, "new certificates are not used",
                  LOG_TEXT("error", error->message));
    else if (changed)
        log_info(&process->log, "new certificates are in use");
}

/* Until SIGTERM or SIGINT. SIGHUP, and time, make it look at the certificates' files. */
static void
wait_for_end(struct process *process, const sigset_t *signals)
{
    for (;;) {
        struct timespec patience = {.tv_sec = RELOAD_SECONDS};
        int signal =
            process->tls ? sigtimedwait(signals, NULL, &patience) : sigwaitinfo(signals, NULL);
        if (signal == SIGTERM || signal == SIGINT) {
            log_info(&process->log, "ending", LOG_TEXT("signal", strsignal(signal)));
            return;
        }
        if (signal == SIGHUP || (signal < 0 && errno == EAGAIN))
            reload_certificates(process);
    }
}

static struct error *
serve(const struct settings *settings)
{
    struct process process AUTO(close_process) = {0};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    memory_tune();
    struct error *error = open_process(&process, settings);
    if (error)
        return error;
    log_start(&process, settings);
    wait_for_end(&process, &signals);
    health_shut_down(process.health);
    if (process.front)
        front_stop(process.front);
    else
        engine_stop(process.storage.engine);
    server_drain(process.server, GRACE_MS);
    return NULL;
}

static struct error *
run(int count, char **arguments, enum exit_code *exit_code)
{
    (void)exit_code;
    struct settings settings = {0};
    bool helped;
    struct error *error = read_flags(&settings, count, arguments, &helped);
    if (!error && !helped) {
        set_defaults(&settings);
        error = check_settings(&settings);
        if (!error)
            error = serve(&settings);
    }
    options_free_list(&settings.listen);
    options_free_list(&settings.storage.backends);
    return error;
}

const struct command serve_command = {"serve", "serve CSI on a unix socket, and on TCP where asked",
                                      run};
