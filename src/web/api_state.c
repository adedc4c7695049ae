/* SPDX-License-Identifier: Apache-2.0 */
/* The API of the page: the server, its nodes and connections, repositories, latencies. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "proto/cluster.pb-c.h"
#include "proto/health.pb-c.h"
#include "proto/repositories.pb-c.h"
#include "web/api_internal.h"

#define REPOSITORY_MS 3000
#define REPOSITORIES_MS 8000 /* for all of them */
#define NS_PER_US 1000

typedef Skycap__V1__NodeInfo node_info;
typedef Skycap__V1__ConnectionInfo connection_info;

#define NODE_STATE(name) SKYCAP__V1__NODE_INFO__STATE__##name
#define CONNECTION_STATE(name) SKYCAP__V1__CONNECTION_INFO__STATE__##name
#define SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING

static void
print_count(struct json_writer *out, const char *name, bool is_known, uint64_t number)
{
    if (is_known)
        json_writer_number(out, name, (int64_t)number);
    else
        json_writer_null(out, name);
}

/* ---- overview ---- */

/* Volumes and snapshots that users see. In a cluster these would be those of this node only. */
static void
print_counts(struct api_request *request)
{
    struct figures figures = {0};
    const struct api_options *options = &request->api->options;
    bool is_known = !options->is_in_cluster && options->figures(options->context, &figures) &&
                    figures.is_counted;
    uint64_t volumes = 0, snapshots = figures.snapshots[0] + figures.snapshots[1];
    for (size_t i = 0; i < FIGURES_VOLUME_STATES; i++)
        if (i == SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY ||
            i == SKYCAP__RECORDS__VOLUME_RECORD__STATE__COPYING ||
            i == SKYCAP__RECORDS__VOLUME_RECORD__STATE__MOVING)
            volumes += figures.volumes[i];
    print_count(&request->out, "volumes", is_known, volumes);
    print_count(&request->out, "snapshots", is_known, snapshots);
}

struct error *
api_show_overview(struct api_request *request)
{
    const struct api_options *options = &request->api->options;
    struct json_writer *out = &request->out;
    json_writer_text(out, "version", SKYCAP_VERSION);
    json_writer_text(out, "driver", options->driver_name);
    json_writer_text(out, "nodeId", options->node_id);
    json_writer_bool(out, "clustered", options->is_in_cluster);
    json_writer_bool(out, "writable", request->may_change);
    json_writer_bool(out, "tokenConfigured", options->token != NULL);
    json_writer_number(out, "startedMs", request->api->started_ms);
    print_counts(request);
    api_print_attention(request);
    return NULL;
}

/* ---- nodes ---- */

static const char *
node_state(const node_info *node)
{
    if (node->is_draining && node->state == NODE_STATE(READY))
        return "draining";
    switch (node->state) {
    case NODE_STATE(READY):
        return "ready";
    case NODE_STATE(NOT_READY):
        return "not-ready";
    case NODE_STATE(UNREACHABLE):
        return "unreachable";
    case NODE_STATE(LOST):
        return "lost";
    default:
        return "unknown";
    }
}

static void
print_node(struct json_writer *out, const node_info *node)
{
    bool has_answered = node->version[0] != '\0';
    json_writer_begin(out, NULL, '{');
    json_writer_text(out, "id", node->id);
    json_writer_bool(out, "self", node->is_this);
    json_writer_text(out, "state", node_state(node));
    json_writer_text(out, "address", node->address);
    json_writer_text(out, "version", node->version);
    print_count(out, "availableBytes", has_answered, (uint64_t)node->available_bytes);
    print_count(out, "capacityBytes", node->total_bytes > 0, (uint64_t)node->total_bytes);
    json_writer_time(out, "lastSeenMs", node->last_seen);
    json_writer_text(out, "trouble", node->trouble);
    json_writer_map(out, "topology", node->topology, node->n_topology);
    json_writer_end(out, '}');
}

static struct error *
probe(struct api_request *request, bool *is_ready)
{
    Csi__V1__ProbeRequest asked = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    struct error *error = api_read(request, "csi.v1.Identity/Probe", &asked, &reply);
    *is_ready = !error && (!reply->ready || reply->ready->value);
    return error;
}

/* Of a process without CSI, such as a registry. */
static struct error *
check_health(struct api_request *request, bool *is_ready)
{
    Grpc__Health__V1__HealthCheckRequest asked = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    Grpc__Health__V1__HealthCheckResponse *reply;
    struct error *error = api_read(request, "grpc.health.v1.Health/Check", &asked, &reply);
    *is_ready = !error && reply->status == SERVING;
    return error;
}

/* A process without a cluster is one node. */
static struct error *
print_only_node(struct api_request *request)
{
    const struct api_options *options = &request->api->options;
    struct figures figures = {0};
    node_info node = SKYCAP__V1__NODE_INFO__INIT;
    bool is_ready;
    struct error *error AUTO(error_cleanup) =
        options->has_storage ? probe(request, &is_ready) : check_health(request, &is_ready);
    node.id = (char *)options->node_id;
    node.is_this = true;
    node.version = (char *)SKYCAP_VERSION;
    node.state = is_ready ? NODE_STATE(READY) : NODE_STATE(NOT_READY);
    node.trouble = error ? error->message : "";
    const struct backend_capacity *room =
        options->figures(options->context, &figures) ? figures_room(&figures) : NULL;
    if (room) {
        node.available_bytes = (int64_t)room->available_bytes;
        node.total_bytes = (int64_t)room->total_bytes;
    }
    print_node(&request->out, &node);
    return NULL;
}

struct error *
api_list_nodes(struct api_request *request)
{
    Skycap__V1__ListNodesRequest asked = SKYCAP__V1__LIST_NODES_REQUEST__INIT;
    Skycap__V1__ListNodesReply *reply = NULL;
    struct error *error = NULL;
    if (request->api->options.is_in_cluster)
        error = api_read(request, "skycap.v1.Nodes/List", &asked, &reply);
    if (error)
        return error;
    json_writer_begin(&request->out, "nodes", '[');
    for (size_t i = 0; reply && i < reply->n_nodes; i++)
        print_node(&request->out, reply->nodes[i]);
    if (!reply)
        error = print_only_node(request);
    json_writer_end(&request->out, ']');
    return error;
}

/* ---- connections ---- */

static const char *
connection_state(const connection_info *connection)
{
    switch (connection->state) {
    case CONNECTION_STATE(READY):
        return "ready";
    case CONNECTION_STATE(DOWN):
        return "down";
    case CONNECTION_STATE(NOT_REACHED_YET):
        return "not-reached";
    case CONNECTION_STATE(NO_GOOD_FILE):
        return "bad-file";
    default:
        return "unknown";
    }
}

static void
print_connection(struct json_writer *out, const connection_info *connection)
{
    const char *trouble = connection->trouble;
    json_writer_begin(out, NULL, '{');
    json_writer_text(out, "name", connection->name);
    json_writer_text(out, "driver", connection->driver);
    json_writer_text(out, "state", connection_state(connection));
    json_writer_text(out, "trouble", trouble[0] ? trouble : connection->file_trouble);
    json_writer_time(out, "sinceMs", connection->since);
    json_writer_number(out, "calls", (int64_t)connection->calls);
    print_count(out, "meanMicroseconds", connection->calls > 0, connection->mean_microseconds);
    json_writer_end(out, '}');
}

struct error *
api_list_connections(struct api_request *request)
{
    Skycap__V1__ListConnectionsRequest asked = SKYCAP__V1__LIST_CONNECTIONS_REQUEST__INIT;
    Skycap__V1__ListConnectionsResponse *reply = NULL;
    struct error *error = NULL;
    if (request->api->options.has_connections)
        error = api_read(request, "skycap.v1.Connections/List", &asked, &reply);
    if (error)
        return error;
    json_writer_begin(&request->out, "connections", '[');
    for (size_t i = 0; reply && i < reply->n_connections; i++)
        print_connection(&request->out, reply->connections[i]);
    json_writer_end(&request->out, ']');
    return NULL;
}

/* ---- repositories ---- */

/* Without what stands before an @: that may be a password. */
static const char *
public_url(const char *url, struct arena *arena)
{
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    const char *at = memrchr(start, '@', strcspn(start, "/?#"));
    if (!at)
        return url;
    return arena_print(arena, "%.*s%s", (int)(start - url), url, at + 1);
}

static void
print_stats(struct api_request *request, const char *name, bool may_ask)
{
    Skycap__V1__RepositoryStatsRequest asked = SKYCAP__V1__REPOSITORY_STATS_REQUEST__INIT;
    Skycap__V1__RepositoryStatsReply *stats = NULL;
    asked.repository = (char *)name;
    if (may_ask) /* an error leaves the answer empty: null */
        error_free(api_ask(request->api, request->arena, REPOSITORY_MS,
                           "skycap.v1.Repositories/Stats", &asked, &stats));
    print_count(&request->out, "snapshots", stats, stats ? stats->snapshots : 0);
    print_count(&request->out, "storedBytes", stats, stats ? stats->bytes_stored : 0);
    json_writer_time(&request->out, "lastExportMs", stats ? stats->exported : NULL);
}

static void
print_repository(struct api_request *request, const Skycap__V1__Repository *repository,
                 uint64_t deadline_ms)
{
    struct json_writer *out = &request->out;
    bool is_good = !repository->error[0];
    json_writer_begin(out, NULL, '{');
    json_writer_text(out, "name", repository->name);
    json_writer_text(out, "url", public_url(repository->url, request->arena));
    json_writer_text(out, "state", is_good ? "ready" : "failed");
    json_writer_text(out, "trouble", repository->error);
    print_stats(request, repository->name, is_good && clock_now_ms() < deadline_ms);
    json_writer_time(out, "lastDrillMs", repository->drilled);
    json_writer_end(out, '}');
}

struct error *
api_list_repositories(struct api_request *request)
{
    Skycap__V1__ListRepositoriesRequest asked = SKYCAP__V1__LIST_REPOSITORIES_REQUEST__INIT;
    Skycap__V1__ListRepositoriesReply *reply = NULL;
    uint64_t deadline_ms = clock_now_ms() + REPOSITORIES_MS;
    struct error *error = NULL;
    if (request->api->options.has_repositories)
        error = api_read(request, "skycap.v1.Repositories/List", &asked, &reply);
    if (error)
        return error;
    json_writer_begin(&request->out, "repositories", '[');
    for (size_t i = 0; reply && i < reply->n_repositories; i++)
        print_repository(request, reply->repositories[i], deadline_ms);
    json_writer_end(&request->out, ']');
    return NULL;
}

struct error *
api_read_page(const struct api_request *request, int32_t *limit, char **after)
{
    const char *text, *token;
    struct error *error = http_request_parameter(request->http, "limit", request->arena, &text);
    if (!error)
        error = http_request_parameter(request->http, "after", request->arena, &token);
    if (error)
        return error;
    size_t digits = strspn(text, "0123456789");
    long number = text[0] ? strtol(text, NULL, 10) : API_MAX_ROWS;
    if (text[digits] || digits > 4 || number < 1 || number > API_MAX_ROWS)
        return error_new(CODE_INVALID_ARGUMENT, "limit: 1 to %d", API_MAX_ROWS);
    *limit = (int32_t)number;
    *after = (char *)token;
    return NULL;
}

struct error *
api_list_exports(struct api_request *request)
{
    Skycap__V1__ListExportsRequest asked = SKYCAP__V1__LIST_EXPORTS_REQUEST__INIT;
    Skycap__V1__ListExportsReply *reply;
    struct json_writer *out = &request->out;
    const char *name;
    struct error *error =
        http_request_parameter(request->http, "repository", request->arena, &name);
    if (!error)
        error = api_read_page(request, &asked.max_entries, &asked.starting_token);
    asked.repository = (char *)name;
    if (!error)
        error = api_read(request, "skycap.v1.Repositories/ListExports", &asked, &reply);
    if (error)
        return error;
    json_writer_begin(out, "exports", '[');
    for (size_t i = 0; i < reply->n_exports; i++) {
        const Skycap__V1__Export *export = reply->exports[i];
        json_writer_begin(out, NULL, '{');
        json_writer_text(out, "id", export->id);
        json_writer_text(out, "snapshotName", export->name);
        json_writer_text(out, "volumeName", export->volume_name);
        json_writer_time(out, "timeMs", export->exported);
        json_writer_number(out, "contentBytes", (int64_t) export->content_bytes);
        json_writer_end(out, '}');
    }
    json_writer_end(out, ']');
    json_writer_text(out, "next", reply->next_token);
    return NULL;
}

/* ---- latencies ---- */

struct error *
api_list_latencies(struct api_request *request)
{
    struct runtime_methods methods =
        runtime_list_methods(request->api->options.runtime, request->arena);
    struct json_writer *out = &request->out;
    json_writer_begin(out, "methods", '[');
    for (size_t i = 0; i < methods.count; i++) {
        const struct runtime_method *method = &methods.items[i];
        if (!method->calls)
            continue;
        json_writer_begin(out, NULL, '{');
        json_writer_text(out, "method", method->path + (method->path[0] == '/'));
        json_writer_number(out, "calls", (int64_t)method->calls);
        json_writer_number(out, "errors", (int64_t)method->errors);
        json_writer_number(out, "meanUs", (int64_t)(method->mean_ns / NS_PER_US));
        json_writer_number(out, "p50Us", (int64_t)(method->half_ns / NS_PER_US));
        json_writer_number(out, "p99Us", (int64_t)(method->most_ns / NS_PER_US));
        json_writer_end(out, '}');
    }
    json_writer_end(out, ']');
    return NULL;
}
