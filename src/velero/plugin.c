/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the plugin's process: see plugin.h. */
#include "velero/plugin.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "rpc/services/health.h"
#include "velero/plugin_handshake.h"
#include "velero/plugin_internal.h"
#include "velero/velero.h"

/* A host waits two seconds for the end. */
#define GRACE_MS 500
/* How often it is checked that the host is still there. */
#define CHECK_S 1
#define MAX_WORKERS 32

bool
plugin_is_started_by_host(void)
{
    const char *cookie = getenv(VELERO_COOKIE_NAME);
    return cookie && strcmp(cookie, VELERO_COOKIE_VALUE) == 0;
}

static void
explain(const char *program)
{
    fprintf(stderr,
            "%s %s is a plugin of Velero: Velero starts it, not you.\n"
            "\n"
            "It makes snapshots of volumes of the CSI driver csi.skycap.dev, and volumes from\n"
            "snapshots. Copy it into Velero's plugin directory, /plugins, and set SKYCAP_ENDPOINT\n"
            "to the address of `skycap serve --listen`; `skycap-velero install DIR` copies it.\n"
            "docs/velero.md tells the rest.\n",
            program, SKYCAP_VERSION);
}

/* ---- what the host says ---- */

/* Is `word` in the list, which is separated by commas? */
static bool
list_has(const char *list, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, size) == 0 && (at[size] == ',' || !at[size]))
            return true;
    }
    return false;
}

/* The value of --NAME VALUE or --NAME=VALUE; "" if it is absent. */
static const char *
find_flag(int count, char **arguments, const char *name)
{
    size_t size = strlen(name);
    for (int i = 1; i < count; i++) {
        const char *flag = arguments[i];
        if (strncmp(flag, "--", 2) != 0 || strncmp(flag + 2, name, size) != 0)
            continue;
        if (flag[2 + size] == '=')
            return flag + 3 + size;
        if (!flag[2 + size] && i + 1 < count)
            return arguments[i + 1];
    }
    return "";
}

/* Velero knows more levels: "warning", "trace" and others. */
static enum log_level
read_level(const char *text)
{
    enum log_level level;
    struct error *error AUTO(error_cleanup) = log_parse_level(text, &level);
    if (!error)
        return level;
    return strcmp(text, "trace") == 0 ? LOG_DEBUG : *text ? LOG_WARN : LOG_INFO;
}

/* ---- serving ---- */

static void
add_services(struct server *server, struct plugin *plugin)
{
    server_add_service(server, &generated_plugin_lister_service, &plugin_lister_handlers, plugin);
    server_add_service(server, &plugin_grpccontroller_service, &plugin_controller_handlers, plugin);
    server_add_service(server, &generated_volume_snapshotter_service, &plugin_snapshotter_handlers,
                       plugin);
    server_add_service(server, &v2_volume_snapshotter_service, &plugin_snapshotter_v2_handlers,
                       plugin);
    server_add_service(server, &v2_backup_item_action_service, &plugin_backup_handlers, plugin);
    server_add_service(server, &v2_restore_item_action_service, &plugin_restore_handlers, plugin);
    server_add_service(server, &generated_delete_item_action_service, &plugin_delete_handlers,
                       plugin);
}

/* SIGTERM is also how Shutdown ends it. Nothing else tells that the host has died. */
static void
wait_for_end(pid_t host, const sigset_t *signals)
{
    const struct timespec patience = {.tv_sec = CHECK_S};
    while (getppid() == host) {
        int number = sigtimedwait(signals, NULL, &patience);
        if (number == SIGTERM || (number < 0 && errno != EAGAIN && errno != EINTR))
            return;
    }
}

static struct error *
serve(struct plugin *plugin, pid_t host, const sigset_t *signals)
{
    struct server *server = server_new(plugin->runtime, &(struct server_options){0});
    struct handshake handshake AUTO(handshake_clear) = {0};
    add_services(server, plugin);
    struct health *health = health_new(server);
    struct error *error = handshake_listen(&handshake, server);
    if (!error)
        error = handshake_say(&handshake, STDOUT_FILENO);
    if (!error) {
        wait_for_end(host, signals);
        health_shut_down(health);
        server_drain(server, GRACE_MS);
    }
    server_free(server);
    health_free(health);
    return error;
}

static struct error *
run(struct plugin *plugin, const struct log *runtime_log)
{
    pid_t host = getppid();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT); /* a host's Ctrl-C is not for its plugins */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    const struct runtime_options options = {.log = runtime_log, .max_workers = MAX_WORKERS};
    struct error *error = runtime_open(&options, &plugin->runtime);
    if (error)
        return error;
    error = serve(plugin, host, &signals);
    link_release(plugin->location);
    link_release(plugin->actions);
    runtime_close(plugin->runtime);
    return error;
}

int
plugin_run(int count, char **arguments)
{
    if (!plugin_is_started_by_host()) {
        explain(count ? arguments[0] : "this program");
        return 1;
    }
    const char *kinds = getenv(VELERO_EXTRA_KINDS);
    struct log log = {.fd = STDERR_FILENO, .json = true, .hclog = true};
    log.level = read_level(find_flag(count, arguments, "log-level"));
    /* Velero logs calls itself, and counts warnings as the backup's. */
    struct log runtime_log = log;
    if (log.level == LOG_INFO)
        runtime_log.level = LOG_WARN;
    struct plugin plugin = {
        .log = &log,
        .command = arguments[0],
        .lists_v2 = kinds && list_has(kinds, VELERO_KIND_SNAPSHOTTER_V2),
        .has_csi = list_has(find_flag(count, arguments, "features"), "EnableCSI"),
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    struct error *error AUTO(error_cleanup) = run(&plugin, &runtime_log);
    if (error)
        log_error(&log, "the plugin cannot start", LOG_TEXT("error", error->message));
    return error ? 1 : 0;
}
