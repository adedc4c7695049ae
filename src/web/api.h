/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API of the web page: docs/page.md. It is a client of this process's own gRPC services, on
 * their unix socket: the same handlers, permissions and metrics. Each path calls fixed methods;
 * nothing else can be reached through it.
 */
#ifndef WEB_API_H
#define WEB_API_H

#include "rpc/runtime/runtime.h"
#include "volumes/figures.h"
#include "web/http.h"

struct api;

/* All of it must outlive the API. */
struct api_options {
    struct runtime *runtime;
    const char *endpoint; /* of the gRPC services */
    const char *driver_name;
    const char *node_id;
    const char *token; /* NULL: nothing can be changed */
    bool is_in_cluster;
    bool has_storage;      /* it serves CSI */
    bool has_connections;  /* it serves skycap.v1.Connections */
    bool has_repositories; /* it serves skycap.v1.Repositories, and there are some */
    /* The sum of the engines of this process. False: it has none. Any thread. */
    bool (*figures)(void *context, struct figures *out);
    void *context;
};

MUST_CHECK struct error *api_open(const struct api_options *options, struct api **out);

/* Where it is served. Until then all requests get 503. */
void api_set_place(struct api *api, bool is_loopback);

/* The services can be called. Until then requests get 503, but for the files of the page. */
void api_begin(struct api *api);

/* Ends the event streams; requests get 503 again. Those in progress go on. NULL is ignored. */
void api_stop(struct api *api);

/* After http_close. NULL is ignored. */
void api_close(struct api *api);

/* For struct http_page: the page at "/" and the API below it. The context is the API. */
void api_serve(void *context, const struct http_request *request, struct http_answer *answer);

/* Reads the token from a file, which only its owner may read. The text belongs to the caller. */
MUST_CHECK struct error *api_read_token(const char *path, char **out);

#endif
