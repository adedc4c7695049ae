/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1: see health.h. */
#include "rpc/health.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "proto/health.rpc.h"
#include "rpc/call.h"

/* How often a watcher's thread looks whether its client has gone, or something has become ready. */
#define LOOK_SECONDS 1

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
#define STATUS(name) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

struct health {
    struct server *server;
    bool (*is_ready)(void *context, const char *service); /* NULL: everything is */
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_down;
};

static bool
is_known(const struct health *health, const char *service)
{
    for (const struct service *const *s = server_services(health->server); *s; s++)
        if (strcmp((*s)->name, service) == 0)
            return true;
    return false;
}

/* With the lock held. go-plugin's hosts ask for a service called "plugin": it is the whole. */
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
    struct health *health = call_context(call);
    pthread_mutex_lock(&health->lock);
    reply->status = status_of(health, request->service);
    pthread_mutex_unlock(&health->lock);
    if (reply->status == STATUS(SERVICE_UNKNOWN))
        return error_new(CODE_NOT_FOUND, "unknown service \"%s\"", request->service);
    return NULL;
}

/* Waits until it is another than `*status`; false: the call is over. */
static bool
wait_for_change(struct health *health, struct call *call, const char *service,
                serving_status *status)
{
    serving_status seen = *status;
    pthread_mutex_lock(&health->lock);
    while ((*status = status_of(health, service)) == seen && !health->is_down &&
           !call_is_cancelled(call)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LOOK_SECONDS;
        pthread_cond_timedwait(&health->changed, &health->lock, &until);
    }
    pthread_mutex_unlock(&health->lock);
    return *status != seen && !call_is_cancelled(call);
}

static struct error *
watch(struct call *call, const Grpc__Health__V1__HealthCheckRequest *request)
{
    struct health *health = call_context(call);
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

struct health *
health_new(struct server *server)
{
    struct health *health = memory_zeroed(sizeof *health);
    health->server = server;
    pthread_mutex_init(&health->lock, NULL);
    pthread_cond_init(&health->changed, NULL);
    server_add_service(server, &grpc_health_v1_health_service, &handlers, health);
    return health;
}

void
health_free(struct health *health)
{
    if (!health)
        return;
    pthread_cond_destroy(&health->changed);
    pthread_mutex_destroy(&health->lock);
    free(health);
}

void
health_ask(struct health *health, bool (*is_ready)(void *context, const char *service),
           void *context)
{
    health->is_ready = is_ready;
    health->context = context;
}

void
health_shut_down(struct health *health)
{
    pthread_mutex_lock(&health->lock);
    health->is_down = true;
    pthread_cond_broadcast(&health->changed);
    pthread_mutex_unlock(&health->lock);
}
