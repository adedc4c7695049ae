/* SPDX-License-Identifier: Apache-2.0 */
/* skycap connection: the connections of a server. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/inventory.h"
#include "cli/table.h"
#include "message/message_json.h"
#include "proto/connections.pb-c.h"

/* ---- showing ---- */

typedef Skycap__V1__ConnectionInfo connection_info;
typedef Skycap__V1__ListConnectionsResponse connection_list;

#define STATE(name) SKYCAP__V1__CONNECTION_INFO__STATE__##name

static const char *
state_of(const connection_info *info)
{
    switch (info->state) {
    case STATE(READY):
        return "ready";
    case STATE(DOWN):
        return "down";
    case STATE(NOT_REACHED_YET):
        return "not-reached";
    case STATE(NO_GOOD_FILE):
        return "bad-file";
    default:
        return "";
    }
}

static const char *
trouble_of(const connection_info *info, struct arena *arena)
{
    if (!info->file_trouble[0])
        return info->trouble;
    const char *file = arena_print(arena, "its file is wrong: %s", info->file_trouble);
    return info->trouble[0] ? arena_print(arena, "%s; %s", info->trouble, file) : file;
}

/* "85 us", "1.2 ms", "3.4 s" */
static const char *
time_text(uint64_t microseconds, struct arena *arena)
{
    if (microseconds < 1000)
        return arena_print(arena, "%" PRIu64 " us", microseconds);
    if (microseconds < 1000000)
        return arena_print(arena, "%.1f ms", (double)microseconds / 1e3);
    return arena_print(arena, "%.1f s", (double)microseconds / 1e6);
}

static const char *
join(char *const *texts, size_t count, struct arena *arena)
{
    const char *joined = "";
    for (size_t i = 0; i < count; i++)
        joined = arena_print(arena, "%s%s%s", joined, i ? ", " : "", texts[i]);
    return joined;
}

static const char *
labels_of(const connection_info *info, struct arena *arena)
{
    const char *labels = "";
    for (size_t i = 0; i < info->n_labels; i++)
        labels = arena_print(arena, "%s%s%s=%s", labels, i ? "," : "", info->labels[i]->key,
                             info->labels[i]->value);
    return labels;
}

static void
print_connections(const connection_list *list, struct arena *arena)
{
    static const char *const headings[] = {"NAME",  "STATE",  "DRIVER", "DEFAULT", "LABELS",
                                           "CALLS", "FAILED", "MEAN",   "TROUBLE"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    for (size_t i = 0; i < list->n_connections; i++) {
        const connection_info *info = list->connections[i];
        table_add(&table, info->name);
        table_add(&table, state_of(info));
        table_add(&table, info->driver);
        table_add(&table, info->is_default ? "yes" : "");
        table_add(&table, labels_of(info, arena));
        table_add(&table, arena_print(arena, "%" PRIu64, info->calls));
        table_add(&table, arena_print(arena, "%" PRIu64, info->failures));
        table_add(&table, info->calls ? time_text(info->mean_microseconds, arena) : "");
        table_add(&table, trouble_of(info, arena));
    }
    table_print(&table);
}

static void
print_driver(const connection_info *info, struct arena *arena)
{
    table_print_fact("driver", info->driver);
    table_print_fact("endpoint", info->endpoint);
    table_print_fact("node at", info->node_endpoint);
    table_print_fact("program", info->program);
    if (info->plugin_name[0])
        table_print_fact("plugin",
                         arena_print(arena, "%s %s", info->plugin_name, info->plugin_version));
    table_print_fact("node", info->node_id);
    table_print_fact("services", join(info->services, info->n_services, arena));
    table_print_fact("controller",
                     join(info->controller_capabilities, info->n_controller_capabilities, arena));
    table_print_fact("on nodes", join(info->node_capabilities, info->n_node_capabilities, arena));
    table_print_fact("groups", join(info->group_capabilities, info->n_group_capabilities, arena));
}

static void
print_connection(const connection_info *info, struct arena *arena)
{
    table_print_fact("name", info->name);
    table_print_fact("state", state_of(info));
    table_print_fact("since", inventory_time_text(info->since, arena));
    table_print_fact("trouble", info->trouble);
    table_print_fact("file", info->file_trouble);
    table_print_fact("loaded", inventory_time_text(info->loaded, arena));
    table_print_fact("default", info->is_default ? "yes" : "");
    if (info->priority)
        table_print_fact("priority", arena_print(arena, "%" PRId64, info->priority));
    table_print_fact("labels", labels_of(info, arena));
    table_print_fact("aliases", join(info->aliases, info->n_aliases, arena));
    print_driver(info, arena);
    if (info->calls)
        table_print_fact("calls",
                         arena_print(arena, "%" PRIu64 ", %" PRIu64 " failed, %s on average",
                                     info->calls, info->failures,
                                     time_text(info->mean_microseconds, arena)));
}

/* ---- list, show and reload ---- */

static struct error *
ask_for_list(struct client *client, connection_list **out)
{
    Skycap__V1__ListConnectionsRequest request = SKYCAP__V1__LIST_CONNECTIONS_REQUEST__INIT;
    return client_ask(client, "skycap.v1.Connections/List", &request, out);
}

static void
print_list(struct client *client, const connection_list *list)
{
    if (client->as_json)
        client_print_json(list, MESSAGE_JSON_PRETTY);
    else
        print_connections(list, &client->arena);
}

static struct error *
list(struct client *client)
{
    connection_list *all;
    struct error *error = ask_for_list(client, &all);
    if (!error)
        print_list(client, all);
    return error;
}

static const struct command list_command = {
    .name = "list",
    .summary = "list all connections and their state",
    .help = "Lists all connections that there is a file for, by name.",
    .run = list,
};

static bool
has_name(const connection_info *info, const char *name)
{
    for (size_t i = 0; i < info->n_aliases; i++)
        if (strcmp(info->aliases[i], name) == 0)
            return true;
    return strcmp(info->name, name) == 0;
}

/* A name takes precedence over an alias of another connection. */
static struct error *
find(const connection_list *all, const char *name, struct arena *arena, const connection_info **out)
{
    const char *names = "";
    *out = NULL;
    for (size_t i = 0; i < all->n_connections; i++) {
        const connection_info *info = all->connections[i];
        if (has_name(info, name) && (!*out || strcmp(info->name, name) == 0))
            *out = info;
        names = arena_print(arena, "%s%s%s", names, i ? ", " : "", info->name);
    }
    if (*out)
        return NULL;
    return error_new(CODE_NOT_FOUND, "there is no connection \"%s\"; there are: %s", name,
                     names[0] ? names : "none");
}

static struct error *
show(struct client *client)
{
    connection_list *all;
    const connection_info *info;
    struct error *error = ask_for_list(client, &all);
    if (!error)
        error = find(all, client->words[0], &client->arena, &info);
    if (!error && client->as_json)
        client_print_json(info, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_connection(info, &client->arena);
    return error;
}

static const struct command show_command = {
    .name = "show",
    .summary = "show one connection",
    .words = "NAME",
    .help = "Shows the state of a connection, the capabilities of its driver and its usage.",
    .run = show,
};

static struct error *
reload(struct client *client)
{
    Skycap__V1__ReloadConnectionsRequest request = SKYCAP__V1__RELOAD_CONNECTIONS_REQUEST__INIT;
    connection_list *all;
    size_t wrong = 0;
    struct error *error = client_ask(client, "skycap.v1.Connections/Reload", &request, &all);
    if (error)
        return error;
    print_list(client, all);
    for (size_t i = 0; i < all->n_connections; i++)
        wrong += all->connections[i]->file_trouble[0] != '\0';
    return wrong ? error_new(CODE_INVALID_ARGUMENT, "%zu of %zu files cannot be used", wrong,
                             all->n_connections)
                 : NULL;
}

static const struct command reload_command = {
    .name = "reload",
    .summary = "have the server read the files now",
    .help = "Has the server look at the files now, and lists the connections then. The server does "
            "so by itself when\nfiles change; this waits for it. If a file cannot be used the exit "
            "code is 1.",
    .run = reload,
};

static struct error *
forget(struct client *client)
{
    Skycap__V1__ForgetConnectionRequest request = SKYCAP__V1__FORGET_CONNECTION_REQUEST__INIT;
    connection_list *all;
    request.name = client->words[0];
    struct error *error = client_ask(client, "skycap.v1.Connections/Forget", &request, &all);
    if (!error)
        print_list(client, all);
    return error;
}

static const struct command forget_command = {
    .name = "forget",
    .summary = "allow a name to be used for another driver",
    .words = "NAME",
    .help = "Allows a name to be used for another driver. A server refuses a file that gives the "
            "name of a connection\nto another driver, because ids with that name belong to volumes "
            "of the first one: make sure that none of\nthem is left.",
    .run = forget,
};

/* ---- all of them ---- */

const struct command connection_command = {
    .name = "connection",
    .summary = "show and check connections",
    .help =
        "Works with connections: the storage systems behind a server, each described by a file.",
    .below = (const struct command *const[]){&list_command, &show_command, &reload_command,
                                             &forget_command, &connection_check_command, NULL},
    .asking = "list, show, reload and forget",
    .unimplemented = "has no connections: it was started without --connections",
};
