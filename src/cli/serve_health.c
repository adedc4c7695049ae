/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1 of a serving process: see serve_health.h. */
#include "cli/serve_health.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "proto/health.rpc.h"
#include "proto/oim.rpc.h"
#include "proto/registry.rpc.h"
#include "rpc/call.h"

/* How often a watcher's thread looks whether its client has gone, and whether the registry has come. */
#define LOOK_SECONDS 1

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
#define STATUS(name) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

struct serve_health {
    struct server *server;
    struct registry *registry;
    pthread_mutex_t lock;
    pthread_cond_t shut_down;
    bool is_down;
};

static bool
is_known(const struct serve_health *health, const char *service)
{
    for (const struct service *const *s = server_services(health->server); *s; s++)
        if (strcmp((*s)->name, service) == 0)
            return true;
    return false;
}

/* go-plugin's hosts ask for a service called "plugin". */
static bool
is_whole(const char *service)
{
    return !service[0] || strcmp(service, "plugin") == 0;
}

static bool
is_of_registry(const char *service)
{
    return strcmp(service, oim_v0_registry_service.name) == 0 ||
           strcmp(service, skycap_v1_registry_service.name) == 0;
}

static bool
waits_for_registry(const struct serve_health *health)
{
    struct error *error AUTO(error_cleanup) =
        health->registry ? registry_check(health->registry) : NULL;
    return error != NULL;
}

/* With the lock held. */
static serving_status
status_of(const struct serve_health *health, const char *service)
{
    if (!is_whole(service) && !is_known(health, service))
        return STATUS(SERVICE_UNKNOWN);
    bool needs_registry = is_whole(service) || is_of_registry(service);
    return health->is_down || (needs_registry && waits_for_registry(health)) ? STATUS(NOT_SERVING)
                                                                             : STATUS(SERVING);
}

static struct error *
check(struct call *call, const Grpc__Health__V1__HealthCheckRequest *request,
      Grpc__Health__V1__HealthCheckResponse *reply)
{
    struct serve_health *health = call_context(call);
    pthread_mutex_lock(&health->lock);
    reply->status = status_of(health, request->service);
    pthread_mutex_unlock(&health->lock);
    if (reply->status == STATUS(SERVICE_UNKNOWN))
        return error_new(CODE_NOT_FOUND, "unknown service \"%s\"", request->service);
    return NULL;
}

/* Waits until it is another than `*status`; false: the call is over. */
static bool
wait_for_change(struct serve_health *health, struct call *call, const char *service,
                serving_status *status)
{
    serving_status seen = *status;
    pthread_mutex_lock(&health->lock);
    while ((*status = status_of(health, service)) == seen && !health->is_down &&
           !call_is_cancelled(call)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LOOK_SECONDS;
        pthread_cond_timedwait(&health->shut_down, &health->lock, &until);
    }
    pthread_mutex_unlock(&health->lock);
    return *status != seen && !call_is_cancelled(call);
}

static struct error *
watch(struct call *call, const Grpc__Health__V1__HealthCheckRequest *request)
{
    struct serve_health *health = call_context(call);
    Grpc__Health__V1__HealthCheckResponse reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    pthread_mutex_lock(&health->lock);
    reply.status = status_of(health, request->service);
    pthread_mutex_unlock(&health->lock);
    do {
        struct error *error = call_send(call, &reply.base);
        if (error)
            return error;
    } while (wait_for_change(health, call, request->service, &reply.status));
    return error_new(CODE_UNAVAILABLE, "the server is going down");
}

static const struct grpc_health_v1_health handlers = {
    .check = {check, .on_loop = true},
    .watch = {watch},
};

struct serve_health *
serve_health_new(struct server *server, struct registry *registry)
{
    struct serve_health *health = memory_zeroed(sizeof *health);
    health->server = server;
    health->registry = registry;
    pthread_mutex_init(&health->lock, NULL);
    pthread_cond_init(&health->shut_down, NULL);
    server_add_service(server, &grpc_health_v1_health_service, &handlers, health);
    return health;
}

void
serve_health_free(struct serve_health *health)
{
    if (!health)
        return;
    pthread_cond_destroy(&health->shut_down);
    pthread_mutex_destroy(&health->lock);
    free(health);
}

void
serve_health_shut_down(struct serve_health *health)
{
    pthread_mutex_lock(&health->lock);
    health->is_down = true;
    pthread_cond_broadcast(&health->shut_down);
    pthread_mutex_unlock(&health->lock);
}
