/* SPDX-License-Identifier: Apache-2.0 */
/* The web page, /metrics and /healthz of a server process: see serve_process.h. */
#include <stdlib.h>
#include <string.h>

#include "base/prometheus.h"
#include "base/version.h"
#include "cli/serve_process.h"
#include "node/health.h"
#include "volumes/figures.h"

/* Ids of a server without connections name the connection "local". */
static void
print_figures(struct engine *engine, size_t most_usages, struct buffer *body)
{
    static const char *const names[] = {"local"};
    struct arena arena AUTO(arena_clear);
    struct figures figures;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    figures_get(engine, &(struct figures_request){most_usages, &arena}, &figures);
    figures_print(names, &figures, 1, body);
}

static void
serve_metrics(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)request;
    struct process *process = context;
    struct buffer *body = &answer->body;
    answer->status = 200;
    answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
    buffer_print(body,
                 "# HELP skycap_info The running program.\n# TYPE skycap_info gauge\n"
                 "skycap_info{version=\"%s\",driver=\"%s\"} 1\n",
                 SKYCAP_VERSION, process->driver_name);
    runtime_print_metrics(process->runtime, body);
    if (process->tls)
        prometheus_print_number(
            body, "skycap_certificate_expiry_timestamp_seconds", "gauge",
            "Until when the certificate in use (--tls-cert) is valid, in Unix time.",
            (uint64_t)runtime_tls_valid_until(process->runtime, process->tls));
    if (!atomic_load(&process->is_open))
        return;
    if (process->storage.engine)
        drill_print_metrics(process->storage.engine, body);
    if (process->router)
        router_print_metrics(process->router, process->metrics_volumes, body);
    if (process->storage.engine)
        print_figures(process->storage.engine, process->metrics_volumes, body);
    if (process->registry)
        registry_print_metrics(process->registry, body);
}

struct error *
serve_pages_check_registry(const struct process *process)
{
    return process->registry ? registry_check(process->registry) : NULL;
}

/* As Probe does: the back ends, or the connections. */
static struct error *
check_storage(struct process *process, struct arena *arena, const char **degraded)
{
    if (process->router && !router_is_ready(process->router, arena, degraded))
        return error_new(CODE_UNAVAILABLE, "no connection is ready");
    return process->storage.engine ? health_check_ready(process->storage.engine) : NULL;
}

static void
serve_health(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)request;
    struct process *process = context;
    struct buffer *body = &answer->body;
    struct arena arena AUTO(arena_clear);
    const char *degraded = "";
    answer->status = 503;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (!atomic_load(&process->is_open)) {
        buffer_append_text(body, "not ready\nthe server is starting\n");
        return;
    }
    struct error *registry AUTO(error_cleanup) = serve_pages_check_registry(process);
    struct error *storage AUTO(error_cleanup) = check_storage(process, &arena, &degraded);
    bool is_ready = !registry && !storage;
    buffer_append_text(body, is_ready ? "ok\n" : "not ready\n");
    if (degraded[0])
        buffer_print(body, "degraded: %s\n", degraded);
    if (storage)
        buffer_print(body, "storage: %s\n", storage->message);
    if (registry)
        buffer_print(body, "registry: %s\n", registry->message);
    answer->status = is_ready ? 200 : 503;
}

/* ---- the page ---- */

static bool
sum_figures(void *context, struct figures *out)
{
    struct process *process = context;
    if (process->router)
        return router_sum_figures(process->router, out);
    if (process->storage.engine)
        figures_get(process->storage.engine, &(struct figures_request){0}, out);
    return process->storage.engine != NULL;
}

static struct error *
open_api(struct process *process, const struct serve_settings *settings)
{
    struct error *error = NULL;
    if (settings->http_token_file)
        error = error_wrap(api_read_token(settings->http_token_file, &process->http_token),
                           "--http-token-file");
    if (error)
        return error;
    struct api_options options = {
        .runtime = process->runtime,
        .endpoint = settings->endpoint,
        .driver_name = settings->driver_name,
        .node_id = settings->node_id,
        .token = process->http_token,
        .is_in_cluster = serve_settings_have_cluster(settings),
        .has_storage = settings->roles & ROLES_OF_CSI,
        .has_connections = settings->connections || serve_settings_have_cluster(settings),
        .has_repositories = settings->repositories,
        .figures = sum_figures,
        .context = process,
    };
    return api_open(&options, &process->api);
}

struct error *
serve_pages_open(struct process *process, const struct serve_settings *settings)
{
    if (!settings->http)
        return NULL;
    struct error *error = open_api(process, settings);
    if (error)
        return error;
    process->pages[0] = (struct http_page){
        .path = "/metrics", .is_monitoring = true, .serve = serve_metrics, .context = process};
    process->pages[1] = (struct http_page){
        .path = "/healthz", .is_monitoring = true, .serve = serve_health, .context = process};
    process->pages[2] = (struct http_page){
        .path = "/", .takes_posts = true, .serve = api_serve, .context = process->api};
    struct http_options options = {
        .address = settings->http,
        .pages = process->pages,
        .page_count = COUNT_OF(process->pages),
        .hosts = settings->http_hosts.items,
        .host_count = settings->http_hosts.count,
        .log = &process->log,
    };
    error = error_wrap(http_open(&options, &process->http), "--http");
    if (!error)
        api_set_place(process->api, http_is_loopback(process->http));
    return error;
}

void
serve_pages_begin(struct process *process)
{
    atomic_store(&process->is_open, true);
    if (process->api)
        api_begin(process->api);
}

void
serve_pages_close(struct process *process)
{
    api_stop(process->api);
    http_close(process->http);
    api_close(process->api);
    if (process->http_token)
        explicit_bzero(process->http_token, strlen(process->http_token));
    free(process->http_token);
}
