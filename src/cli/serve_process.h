/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a server process, and in which order they start and end. */
#ifndef CLI_SERVE_PROCESS_H
#define CLI_SERVE_PROCESS_H

#include <stdatomic.h>

#include "cli/serve_guard.h"
#include "cli/serve_registration.h"
#include "cli/serve_settings.h"
#include "connections/router/router.h"
#include "csi/services.h"
#include "node/drill.h"
#include "node/storage.h"
#include "oim/controller.h"
#include "registry/registry.h"
#include "rpc/runtime/runtime.h"
#include "rpc/server/server.h"
#include "rpc/services/health.h"
#include "web/api.h"

/* In the order in which they are opened. */
struct process {
    const char *driver_name;
    size_t metrics_volumes; /* whose usage /metrics tells; 0: none */
    struct log log;
    struct log_losses log_losses;
    struct log_batch log_batch;
    struct repository_places repositories;
    struct storage storage;
    struct drill_schedule *drills; /* NULL: there are no repositories */
    struct identity identity;
    struct controller controller;
    struct arena arena;            /* of the cluster's topology */
    struct router_cluster cluster; /* of the router */
    char *cluster_store;           /* the URL of its store; NULL: no cluster */
    struct buffer connection;      /* the router's only connection, if it has no files */
    struct router *router;         /* with --connections or a cluster, instead of the three above */
    struct store *registry_store;
    struct registry *registry;
    const char **readers; /* of the registry, ends with NULL; NULL: the default ones */
    struct oim_controller *oim_controller;
    struct serve_guard guard;
    struct tls_context *tls;
    struct tls_context *store_tls;
    struct runtime *runtime;
    struct server *server;
    struct serve_registration *registration; /* with the kubelet; may be NULL */
    struct health *health;
    struct http *http;
    struct http_page pages[3];
    struct api *api;     /* of the web page; NULL without --http */
    char *http_token;    /* may be NULL */
    atomic_bool is_open; /* the parts above can be used; HTTP is served before */
};

/* After an error, too: serve_process_close. */
MUST_CHECK struct error *serve_process_open(struct process *process,
                                            const struct serve_settings *settings);
/* Finishes the calls in progress. */
void serve_process_stop(struct process *process);
void serve_process_close(struct process *process);

/* ---- serve_pages.c ---- */

/* Opens process->http, if it is wanted. What is not open yet answers 503. */
MUST_CHECK struct error *serve_pages_open(struct process *process,
                                          const struct serve_settings *settings);
/* Everything is open. */
void serve_pages_begin(struct process *process);
/* Before the server is freed. */
void serve_pages_close(struct process *process);

/* Whether the registry is ready; NULL if there is none. */
MUST_CHECK struct error *serve_pages_check_registry(const struct process *process);

#endif
