/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1 for a server: the whole ("") and each of its services are SERVING until the server ends, unless somebody knows better. */
#ifndef RPC_SERVICES_HEALTH_H
#define RPC_SERVICES_HEALTH_H

#include "rpc/server/server.h"

struct health;

/* Adds the service. Free it after the server. */
struct health *health_new(struct server *server);
void health_free(struct health *health);

/*
 * Before the server listens: who knows whether the whole (service "") or one of the services can be used yet. It is asked on the loop, where it must not wait, with every
 * question, and once a second for each of those who watch.
 */
void health_ask(struct health *health, bool (*is_ready)(void *context, const char *service),
                void *context);

/* From now on everything is NOT_SERVING; watchers learn it at once and their calls end. Call it before server_drain. */
void health_shut_down(struct health *health);

#endif
