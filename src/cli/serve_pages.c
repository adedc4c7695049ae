/* SPDX-License-Identifier: Apache-2.0 */
/* The pages /metrics and /healthz of a server process: see serve_process.h. */
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

static int
print_metrics(void *context, struct buffer *body)
{
    struct process *process = context;
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
    if (process->storage.engine)
        drill_print_metrics(process->storage.engine, body);
    if (process->router)
        router_print_metrics(process->router, process->metrics_volumes, body);
    if (process->storage.engine)
        print_figures(process->storage.engine, process->metrics_volumes, body);
    if (process->registry)
        registry_print_metrics(process->registry, body);
    return 200;
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

static int
print_health(void *context, struct buffer *body)
{
    struct process *process = context;
    struct arena arena AUTO(arena_clear);
    const char *degraded = "";
    arena_init(&arena, NULL, 0, SIZE_MAX);
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
    return is_ready ? 200 : 503;
}

void
serve_pages_init(struct process *process)
{
    process->pages[0] = (struct http_page){"/metrics", "text/plain; version=0.0.4; charset=utf-8",
                                           print_metrics, process};
    process->pages[1] =
        (struct http_page){"/healthz", "text/plain; charset=utf-8", print_health, process};
}
