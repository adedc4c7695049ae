/* SPDX-License-Identifier: Apache-2.0 */
/* skycap velero host list. */
#include "cli/table.h"
#include "cli/velero_host.h"
#include "message/message_json.h"

static const char *
use_of(const Skycap__V1__HostPlugin *plugin, struct arena *arena)
{
    if (plugin->trouble[0])
        return arena_print(arena, "no: %s", plugin->trouble);
    if (plugin->adapted)
        return "yes, as version 2";
    return plugin->usable ? "yes" : "no, for backup servers";
}

static void
print_list(const Skycap__V1__HostPlugins *list, struct arena *arena)
{
    static const char *const headings[] = {"NAME", "KIND", "BINARY", "USED"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    for (size_t i = 0; i < list->n_plugins; i++) {
        table_add(&table, list->plugins[i]->name);
        table_add(&table, list->plugins[i]->kind);
        table_add(&table, list->plugins[i]->binary);
        table_add(&table, use_of(list->plugins[i], arena));
    }
    table_print(&table);
}

static Skycap__V1__HostPlugin *
add_to_list(Skycap__V1__HostPlugins *list, const struct host_binary *binary, struct arena *arena)
{
    Skycap__V1__HostPlugin *plugin = arena_alloc(arena, sizeof *plugin);
    skycap__v1__host_plugin__init(plugin);
    plugin->binary = (char *)binary->name;
    list->plugins[list->n_plugins++] = plugin;
    return plugin;
}

static void
fill_plugin(Skycap__V1__HostPlugin *out, const struct host_plugin *plugin)
{
    out->kind = (char *)plugin->kind;
    out->name = (char *)plugin->name;
    out->trouble = (char *)(plugin->trouble ? plugin->trouble : "");
    out->adapted = !plugin->trouble && plugin->known_as == HOST_KIND_SNAPSHOTTER;
    out->usable =
        out->adapted || (!plugin->trouble && plugin->known_as == HOST_KIND_SNAPSHOTTER_V2);
}

/* Binaries that cannot be used come last. */
static Skycap__V1__HostPlugins *
make_list(struct velero_host *host, bool *has_trouble)
{
    struct arena *arena = &host->client->arena;
    Skycap__V1__HostPlugins *list = arena_alloc(arena, sizeof *list);
    size_t plugin_count, binary_count;
    const struct host_plugin *plugins = host_plugins(host->host, &plugin_count);
    const struct host_binary *binaries = host_binaries(host->host, &binary_count);
    skycap__v1__host_plugins__init(list);
    list->plugins = arena_alloc(arena, (plugin_count + binary_count + 1) * sizeof(void *));
    for (size_t i = 0; i < plugin_count; i++)
        fill_plugin(add_to_list(list, plugins[i].binary, arena), &plugins[i]);
    for (size_t i = 0; i < binary_count; i++) {
        if (!binaries[i].trouble)
            continue;
        add_to_list(list, &binaries[i], arena)->trouble = (char *)binaries[i].trouble;
        *has_trouble = true;
    }
    return list;
}

static struct error *
list_plugins(struct client *client)
{
    struct velero_host host AUTO(velero_host_close) = {0};
    struct error *error = velero_host_open(&host, client);
    if (error)
        return error;
    const Skycap__V1__HostPlugins *list = make_list(&host, &client->has_failed);
    if (client->as_json)
        client_print_json(list, MESSAGE_JSON_PRETTY);
    else
        print_list(list, &client->arena);
    return NULL;
}

const struct command velero_host_list_command = {
    .name = "list",
    .summary = "start each plugin and list what is in it",
    .help = "Starts every program in the plugin directory, as Velero does, and lists what it "
            "offers. The exit code is 1\nif one of them cannot be used: Velero would not start "
            "with it.",
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = list_plugins,
};
