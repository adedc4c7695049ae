/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.health.v1 of a serving process: each service, and the whole (""), is SERVING until the process ends. While a registry has not read its entries
 * yet, it and the whole are NOT_SERVING. rpc/health.h is for servers of which all is there from the beginning.
 */
#ifndef CLI_SERVE_HEALTH_H
#define CLI_SERVE_HEALTH_H

#include "registry/registry.h"
#include "rpc/server.h"

struct serve_health;

/* Adds the service. Free it after the server, and before the registry (NULL: there is none). */
struct serve_health *serve_health_new(struct server *server, struct registry *registry);
void serve_health_free(struct serve_health *health);

/* From now on everything is NOT_SERVING; watchers learn it at once and their calls end. Call it before server_drain. */
void serve_health_shut_down(struct serve_health *health);

#endif
