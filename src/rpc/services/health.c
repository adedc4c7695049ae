/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1: see health.h. */
#include "rpc/services/health.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/health.rpc.h"
#include "rpc/server/call_internal.h"

/* How often watched services are polled for a change. */
#define POLL_NS UINT64_C(1000000000)

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
#define STATUS(name) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

/* Loop thread only: a watch is a parked call and holds no thread. */
struct health {
    struct server *server;
    bool (*is_ready)(void *context, const char *service); /* NULL: always ready */
    void *context;
    bool is_down;
    struct watcher *watchers;
    struct timer poll; /* armed while there are watchers */
};

/* Allocated in the arena of its call. */
struct watcher {
    struct call *call;
    struct health *health;
    const char *service;
    serving_status last_status;
    struct watcher *next;
    struct watcher **link;
};

static bool
is_known(const struct health *health, const char *service)
{
    for (const struct service *const *s = server_services(health->server); *s; s++)
        if (strcmp((*s)->name, service) == 0)
            return true;
    return false;
}

/* go-plugin hosts ask for a service named "plugin", meaning the whole server. */
static serving_status
status_of(const struct health *health, const char *service)
{
    if (strcmp(service, "plugin") == 0)
        service = "";
    if (service[0] && !is_known(health, service))
        return STATUS(SERVICE_UNKNOWN);
    bool is_ready = !health->is_ready || health->is_ready(health->context, service);
    return is_ready && !health->is_down ? STATUS(SERVING) : STATUS(NOT_SERVING);
}

static struct error *
check(struct call *call, const Grpc__Health__V1__HealthCheckRequest *request,
      Grpc__Health__V1__HealthCheckResponse *reply)
{
    reply->status = status_of(call_context(call), request->service);
    if (reply->status == STATUS(SERVICE_UNKNOWN))
        return error_new(CODE_NOT_FOUND, "unknown service \"%s\"", request->service);
    return NULL;
}

/* ---- watches ---- */

static void
remove_watcher(struct call *call)
{
    struct watcher *watcher = call_data(call);
    struct health *health = watcher->health;
    *watcher->link = watcher->next;
    if (watcher->next)
        watcher->next->link = watcher->link;
    if (!health->watchers)
        loop_disarm(health->server->loop, &health->poll);
}

static void
add_watcher(struct health *health, struct watcher *watcher)
{
    if (!health->watchers)
        loop_arm(health->server->loop, &health->poll, timers_now() + POLL_NS);
    watcher->next = health->watchers;
    if (watcher->next)
        watcher->next->link = &watcher->next;
    watcher->link = &health->watchers;
    health->watchers = watcher;
}

/*
 * If the client has not read the last status yet, retries at the next poll, with the status of that
 * time.
 */
static void
notify(struct watcher *watcher)
{
    Grpc__Health__V1__HealthCheckResponse reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    reply.status = status_of(watcher->health, watcher->service);
    if (reply.status != watcher->last_status && call_push(watcher->call, &reply.base))
        watcher->last_status = reply.status;
}

static void
notify_all(struct timer *timer)
{
    struct health *health = CONTAINER_OF(timer, struct health, poll);
    for (struct watcher *watcher = health->watchers; watcher; watcher = watcher->next)
        notify(watcher);
    loop_arm(health->server->loop, timer, timers_now() + POLL_NS);
}

static struct error *
shutdown_error(void)
{
    return error_new(CODE_UNAVAILABLE, "the server is shutting down");
}

static struct error *
watch(struct call *call, const Grpc__Health__V1__HealthCheckRequest *request)
{
    struct health *health = call_context(call);
    struct watcher *watcher = arena_zeroed(call_arena(call), sizeof *watcher);
    *watcher = (struct watcher){.call = call,
                                .health = health,
                                .service = request->service,
                                .last_status = STATUS(UNKNOWN)};
    notify(watcher);
    if (health->is_down)
        return shutdown_error();
    call_set_data(call, watcher, NULL);
    call_park(call, remove_watcher);
    add_watcher(health, watcher);
    return NULL;
}

static void
shut_down(void *argument)
{
    struct health *health = argument;
    health->is_down = true;
    while (health->watchers) {
        struct watcher *watcher = health->watchers;
        notify(watcher);
        remove_watcher(watcher->call);
        call_unpark(watcher->call, shutdown_error());
    }
}

static const struct grpc_health_v1_health handlers = {
    .check = {check, .on_loop = true},
    .watch = {watch, .on_loop = true},
};

struct health *
health_new(struct server *server)
{
    struct health *health = memory_zeroed(sizeof *health);
    health->server = server;
    health->poll.fire = notify_all;
    server_add_service(server, &grpc_health_v1_health_service, &handlers, health);
    server_reserve_for(server, GRPC_HEALTH_V1_HEALTH_CHECK);
    return health;
}

void
health_free(struct health *health)
{
    free(health);
}

void
health_set_check(struct health *health, bool (*is_ready)(void *context, const char *service),
                 void *context)
{
    health->is_ready = is_ready;
    health->context = context;
}

void
health_shut_down(struct health *health)
{
    loop_run(health->server->loop, shut_down, health);
}
