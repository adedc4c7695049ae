/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed: see api_look.h. */
#include "web/api_look.h"

#include <inttypes.h>
#include <string.h>

#include "proto/cluster.pb-c.h"

#define SLOW_ROUNDS 3 /* other processes are asked every third time */
#define LOOK_MS 4000

const char *const api_look_topics[API_TOPICS] = {"volumes", "snapshots", "nodes", "connections",
                                                 "repositories"};

void
api_look_init(struct api_look *look, struct api *api)
{
    *look = (struct api_look){.api = api};
}

void
api_look_clear(struct api_look *look)
{
    buffer_clear(&look->nodes);
    buffer_clear(&look->connections);
}

/* Replaces the old text. */
static bool
replace(struct buffer *old, struct buffer *new)
{
    bool is_changed =
        old->size != new->size || (new->size &&memcmp(old->bytes, new->bytes, new->size) != 0);
    buffer_clear(old);
    *old = *new;
    *new = (struct buffer){0};
    return is_changed;
}

/* The room changes all the time, so it is not compared. */
static bool
look_at_nodes(struct api_look *look, struct arena *arena, uint64_t *changes)
{
    Skycap__V1__ListNodesRequest asked = SKYCAP__V1__LIST_NODES_REQUEST__INIT;
    Skycap__V1__ListNodesReply *reply;
    struct buffer text AUTO(buffer_clear) = {0};
    struct error *error AUTO(error_cleanup) =
        api_ask(look->api, arena, LOOK_MS, "skycap.v1.Nodes/List", &asked, &reply);
    for (size_t i = 0; !error && i < reply->n_nodes; i++) {
        const Skycap__V1__NodeInfo *node = reply->nodes[i];
        buffer_print(&text, "%s %d %d %s\n", node->id, (int)node->state, node->is_draining,
                     node->trouble);
        *changes += node->changes;
    }
    if (error)
        buffer_append_text(&text, error->message);
    return replace(&look->nodes, &text);
}

static bool
look_at_connections(struct api_look *look, struct arena *arena)
{
    Skycap__V1__ListConnectionsRequest asked = SKYCAP__V1__LIST_CONNECTIONS_REQUEST__INIT;
    Skycap__V1__ListConnectionsResponse *reply;
    struct buffer text AUTO(buffer_clear) = {0};
    struct error *error AUTO(error_cleanup) =
        api_ask(look->api, arena, LOOK_MS, "skycap.v1.Connections/List", &asked, &reply);
    for (size_t i = 0; !error && i < reply->n_connections; i++) {
        const Skycap__V1__ConnectionInfo *connection = reply->connections[i];
        buffer_print(&text, "%s %d %s %s\n", connection->name, (int)connection->state,
                     connection->trouble, connection->file_trouble);
    }
    return replace(&look->connections, &text);
}

/* Other drivers do not tell of changes, but they are made by calls of this server. */
static uint64_t
count_calls(const struct api_look *look, struct arena *arena)
{
    static const char *const changing[] = {
        "/csi.v1.Controller/CreateVolume",           "/csi.v1.Controller/DeleteVolume",
        "/csi.v1.Controller/ControllerExpandVolume", "/csi.v1.Controller/ControllerModifyVolume",
        "/csi.v1.Controller/CreateSnapshot",         "/csi.v1.Controller/DeleteSnapshot",
    };
    struct runtime_methods methods = runtime_list_methods(look->api->options.runtime, arena);
    uint64_t count = 0;
    for (size_t i = 0; i < methods.count; i++)
        for (size_t j = 0; j < COUNT_OF(changing); j++)
            if (strcmp(methods.items[i].path, changing[j]) == 0)
                count += methods.items[i].calls;
    return count;
}

void
api_look_again(struct api_look *look, bool is_changed[API_TOPICS])
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct api_options *options = &look->api->options;
    struct figures figures = {0};
    bool is_first = !look->rounds, is_slow_round = look->rounds++ % SLOW_ROUNDS == 0;
    uint64_t changes = look->changes;
    uint64_t calls = options->has_connections ? count_calls(look, &arena) : 0;
    if (!options->is_in_cluster)
        changes = options->figures(options->context, &figures) ? figures.changes : 0;
    if (is_slow_round && options->is_in_cluster) {
        changes = 0;
        is_changed[TOPIC_NODES] = look_at_nodes(look, &arena, &changes);
    }
    if (is_slow_round && options->has_connections)
        is_changed[TOPIC_CONNECTIONS] = look_at_connections(look, &arena);
    is_changed[TOPIC_VOLUMES] = is_changed[TOPIC_SNAPSHOTS] =
        changes != look->changes || calls != look->calls;
    look->changes = changes;
    look->calls = calls;
    if (is_first)
        memset(is_changed, 0, API_TOPICS * sizeof *is_changed);
}
