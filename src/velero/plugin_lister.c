/* SPDX-License-Identifier: Apache-2.0 */
/* What a host asks every plugin: which kinds it has, what they are for, and to end. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "velero/plugin_internal.h"
#include "velero/velero.h"

#define MOST_KINDS 5

struct error *
plugin_check_name(const char *name)
{
    if (strcmp(name, PLUGIN_NAME) == 0)
        return NULL;
    return error_new(CODE_UNKNOWN, "there is no plugin \"%.253s\" here, only %s", name,
                     PLUGIN_NAME);
}

struct error *
plugin_apply_to_volumes(struct call *call, const char *name, Generated__AppliesToResponse *reply)
{
    struct arena *arena = call_arena(call);
    Generated__ResourceSelector *selector = arena_alloc(arena, sizeof *selector);
    generated__resource_selector__init(selector);
    selector->includedresources = arena_alloc(arena, sizeof(char *));
    selector->includedresources[selector->n_includedresources++] = (char *)"persistentvolumes";
    reply->resourceselector = selector;
    return plugin_check_name(name);
}

static void
add_kind(struct call *call, Generated__ListPluginsResponse *reply, const char *kind)
{
    const struct plugin *plugin = call_context(call);
    Generated__PluginIdentifier *identifier = arena_alloc(call_arena(call), sizeof *identifier);
    generated__plugin_identifier__init(identifier);
    identifier->command = (char *)plugin->command;
    identifier->kind = (char *)kind;
    identifier->name = (char *)PLUGIN_NAME;
    reply->plugins[reply->n_plugins++] = identifier;
}

/* Actions have no Init: without an address in the environment they could do nothing. */
static struct error *
list_plugins(struct call *call, const Generated__Empty *request,
             Generated__ListPluginsResponse *reply)
{
    (void)request;
    const struct plugin *plugin = call_context(call);
    reply->plugins = arena_alloc(call_arena(call), MOST_KINDS * sizeof(void *));
    add_kind(call, reply, VELERO_KIND_SNAPSHOTTER);
    if (plugin->lists_v2)
        add_kind(call, reply, VELERO_KIND_SNAPSHOTTER_V2);
    if (!plugin_settings_has_environment())
        return NULL;
    add_kind(call, reply, VELERO_KIND_BACKUP_ACTION_V2);
    add_kind(call, reply, VELERO_KIND_RESTORE_ACTION_V2);
    add_kind(call, reply, VELERO_KIND_DELETE_ACTION);
    return NULL;
}

/* The main thread waits for the signal. */
static struct error *
shut_down(struct call *call, const Plugin__Empty *request, Plugin__Empty *reply)
{
    (void)call, (void)request, (void)reply;
    kill(getpid(), SIGTERM);
    return NULL;
}

const struct generated_plugin_lister plugin_lister_handlers = {
    .list_plugins = {list_plugins, .on_loop = true},
};

const struct plugin_grpccontroller plugin_controller_handlers = {
    .shutdown = {shut_down, .on_loop = true},
};
