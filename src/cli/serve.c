/* SPDX-License-Identifier: Apache-2.0 */
/* skycap serve: the server process, from flags to SIGTERM. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/descriptors.h"
#include "base/memory.h"
#include "base/notify.h"
#include "base/version.h"
#include "cli/client.h"
#include "cli/serve_greeting.h"
#include "cli/serve_process.h"
#include "rpc/http2/inherited.h"

#define RELOAD_SECONDS 10

static void
log_start(const struct process *process, const struct serve_settings *settings)
{
    char text[300];
    const struct address *address;
    for (size_t i = 0; (address = server_address(process->server, i)); i++) {
        address_print(address, text, sizeof text);
        log_info(&process->log, "listening", LOG_TEXT("address", text));
    }
    if (process->http)
        log_info(&process->log, "serving metrics", LOG_NUMBER("port", http_port(process->http)));
    struct error *error AUTO(error_cleanup) = serve_pages_check_registry(process);
    log_info(&process->log, error ? "started, and waits for the registry's store" : "ready",
             LOG_TEXT("version", SKYCAP_VERSION), LOG_TEXT("roles", settings->roles_text),
             LOG_TEXT("driver", settings->driver_name), LOG_TEXT("node", settings->node_id));
}

/* ---- the service manager ---- */

static void
tell_manager(const struct process *process, const struct notify *notify, const char *lines)
{
    struct error *error AUTO(error_cleanup) = notify_send(notify, lines);
    if (error)
        log_warn(&process->log, "the service manager does not answer",
                 LOG_TEXT("error", error->message));
}

static void
tell_ready(const struct process *process, const struct serve_settings *settings,
           const struct notify *notify)
{
    char text[300];
    const struct address *address;
    struct buffer lines AUTO(buffer_clear) = {0};
    buffer_print(&lines, "READY=1\nSTATUS=serving %s at", settings->roles_text);
    for (size_t i = 0; (address = server_address(process->server, i)); i++) {
        address_print(address, text, sizeof text);
        buffer_print(&lines, "%s %s", i ? "," : "", text);
    }
    tell_manager(process, notify, buffer_text(&lines));
}

static void
ping(void *argument)
{
    notify_ping(argument);
}

/* The loop's thread pings: a loop that hangs is noticed, even if the rest of the process runs. */
static void
start_watchdog(const struct process *process, struct notify *notify)
{
    uint64_t half_ms = notify->watchdog_us / 2000;
    if (notify->watchdog_us)
        runtime_start_heartbeat(
            process->runtime, half_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)half_ms, ping, notify);
}

/* ---- until SIGTERM ---- */

static void
reload_certificates(struct process *process, struct tls_context *tls)
{
    bool changed = false;
    if (!tls)
        return;
    struct error *error AUTO(error_cleanup) = runtime_reload_tls(process->runtime, tls, &changed);
    if (error)
        log_error(&process->log, "new certificates are not used",
                  LOG_TEXT("error", error->message));
    else if (changed)
        log_info(&process->log, "new certificates are in use");
}

/* Until SIGTERM or SIGINT. Reads changed certificates on SIGHUP and every RELOAD_SECONDS. */
static void
wait_for_end(struct process *process, const sigset_t *signals)
{
    bool has_tls = process->tls || process->store_tls;
    for (;;) {
        struct timespec patience = {.tv_sec = RELOAD_SECONDS};
        int signal = has_tls ? sigtimedwait(signals, NULL, &patience) : sigwaitinfo(signals, NULL);
        if (signal == SIGTERM || signal == SIGINT) {
            log_info(&process->log, "ending", LOG_TEXT("signal", strsignal(signal)));
            return;
        }
        if (signal == SIGHUP || (signal < 0 && errno == EAGAIN)) {
            reload_certificates(process, process->tls);
            reload_certificates(process, process->store_tls);
        }
    }
}

static struct error *
serve(struct client *client)
{
    (void)client;
    struct notify notify AUTO(notify_close) = NOTIFY_NONE; /* used until the process is closed */
    struct process process AUTO(serve_process_close) = {0};
    const struct serve_settings *settings;
    struct error *error = serve_settings_read(&settings);
    if (!error)
        error = inherited_open();
    if (!error)
        error = notify_open(&notify);
    if (error)
        return error;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    memory_tune();
    descriptors_raise_limit();
    error = serve_process_open(&process, settings);
    if (error)
        return error;
    log_start(&process, settings);
    start_watchdog(&process, &notify);
    tell_ready(&process, settings, &notify);
    serve_greet(&process, settings);
    wait_for_end(&process, &signals);
    tell_manager(&process, &notify, "STOPPING=1\nSTATUS=finishing the calls in progress");
    serve_process_stop(&process);
    return NULL;
}

const struct command serve_command = {
    .name = "serve",
    .summary = "serve CSI on a unix socket, and optionally on TCP",
    .help = "Serves CSI and the other roles on a unix socket, and optionally on TCP. Certificates "
            "are read again\nwhen their files change. On SIGTERM it finishes the calls in progress "
            "and exits.",
    .flags = serve_settings_flags,
    .more_flags = COMMAND_NO_FLAGS,
    .run = serve,
};
