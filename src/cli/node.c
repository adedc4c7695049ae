/* SPDX-License-Identifier: Apache-2.0 */
/* skycap node: the nodes of a cluster. */
#include <string.h>

#include "base/size_text.h"
#include "cli/inventory.h"
#include "cli/node.h"
#include "cli/table.h"
#include "message/message_json.h"
#include "proto/cluster.pb-c.h"

typedef Skycap__V1__NodeInfo node_info;
typedef Skycap__V1__ListNodesReply node_list;

#define STATE(name) SKYCAP__V1__NODE_INFO__STATE__##name

static const char *
state_of(const node_info *info)
{
    switch (info->state) {
    case STATE(READY):
        return info->is_draining ? "draining" : "ready";
    case STATE(NOT_READY):
        return "not-ready";
    case STATE(UNREACHABLE):
        return "unreachable";
    case STATE(LOST):
        return "lost";
    default:
        return "";
    }
}

static const char *
room_of(const node_info *info, struct arena *arena)
{
    char text[32];
    bool is_known = info->state == STATE(READY) || info->state == STATE(NOT_READY);
    size_text_print(info->available_bytes, text, sizeof text);
    return is_known ? arena_string(arena, text) : "";
}

static const char *
topology_of(const node_info *info, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < info->n_topology; i++)
        text = arena_print(arena, "%s%s%s=%s", text, i ? ", " : "", info->topology[i]->key,
                           info->topology[i]->value);
    return text;
}

/* ---- list ---- */

static void
print_nodes(const node_list *list, struct arena *arena)
{
    static const char *const headings[] = {"NODE",    "STATE",     "ADDRESS", "FREE",
                                           "VERSION", "LAST SEEN", "TROUBLE"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    for (size_t i = 0; i < list->n_nodes; i++) {
        const node_info *info = list->nodes[i];
        table_add(&table, info->is_this ? arena_print(arena, "%s *", info->id) : info->id);
        table_add(&table, state_of(info));
        table_add(&table, info->address);
        table_add(&table, room_of(info, arena));
        table_add(&table, info->version);
        table_add(&table, inventory_time_text(info->last_seen, arena));
        table_add(&table, info->trouble);
    }
    table_print(&table);
}

static struct error *
list(struct client *client)
{
    node_list *all;
    struct error *error = node_ask_for_list(client, &all);
    if (!error && client->as_json)
        client_print_json(all, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_nodes(all, &client->arena);
    return error;
}

static const struct command list_command = {
    .name = "list",
    .summary = "list all nodes and their state",
    .help = "Lists all nodes of the cluster. Each is asked how it is. A star marks the node that "
            "answers.",
    .run = list,
};

/* ---- show ---- */

static struct error *
show(struct client *client)
{
    node_list *all;
    struct arena *arena = &client->arena;
    const char *id = client->words[0];
    struct error *error = node_ask_for_list(client, &all);
    if (error)
        return error;
    const node_info *info = NULL;
    for (size_t i = 0; i < all->n_nodes; i++)
        if (strcmp(all->nodes[i]->id, id) == 0)
            info = all->nodes[i];
    if (!info)
        return error_new(CODE_NOT_FOUND, "there is no node \"%s\" in the cluster", id);
    if (client->as_json) {
        client_print_json(info, MESSAGE_JSON_PRETTY);
        return NULL;
    }
    table_print_fact("node", info->id);
    table_print_fact("state", state_of(info));
    table_print_fact("trouble", info->trouble);
    table_print_fact("address", info->address);
    table_print_fact("version", info->version);
    table_print_fact("free", room_of(info, arena));
    table_print_fact("topology", topology_of(info, arena));
    table_print_fact("last seen", inventory_time_text(info->last_seen, arena));
    return NULL;
}

static const struct command show_command = {
    .name = "show",
    .summary = "show one node",
    .words = "NODE",
    .help = "Shows the state, the room and the topology of a node.",
    .run = show,
};

const struct command node_command = {
    .name = "node",
    .summary = "list, drain and forget the nodes of a cluster",
    .help = "The nodes of a cluster: skycap servers with the same --registry.",
    .below = (const struct command *const[]){&list_command, &show_command, &node_drain_command,
                                             &node_forget_command, NULL},
    .unimplemented = "is in no cluster: it was started without --registry and --listen",
};
