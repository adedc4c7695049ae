/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.health.v1: the server as a whole ("") and each of its services are SERVING until shutdown,
 * unless a readiness check says otherwise.
 */
#ifndef RPC_SERVICES_HEALTH_H
#define RPC_SERVICES_HEALTH_H

#include "rpc/server/server.h"

struct health;

/* Adds the service. Call health_free after server_free. */
struct health *health_new(struct server *server);
void health_free(struct health *health);

/*
 * Sets the readiness check of the server (service "") and its services. Call before server_listen.
 * The check runs on the loop, for every request and once per second for each watcher; it must not
 * block.
 */
void health_set_check(struct health *health, bool (*is_ready)(void *context, const char *service),
                      void *context);

/*
 * Reports NOT_SERVING from now on; notifies all watchers and ends their calls. Call before
 * server_drain.
 */
void health_shut_down(struct health *health);

#endif
