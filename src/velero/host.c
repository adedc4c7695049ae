/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host of Velero's plugins: see host.h.
 *
 * Discovery starts several binaries at once: one that hangs costs its time limit, and the others
 * are done by then.
 */
#include "velero/host.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/velero_v1.pb-c.h"
#include "velero/host_directory.h"
#include "velero/host_temporary.h"

#define AT_ONCE 16u
#define MAX_TEXT_BYTES 253
#define LIST_BYTES (16u << 20) /* a list, decoded */
#define DEFAULT_DOMAIN "velero.io/"

struct host {
    struct host_options options;
    struct arena arena;
    struct host_temporary temporary; /* its directory, for sockets and certificates */
    struct host_identity identity;
    unsigned started; /* processes, for the names of their directories */
    struct host_binary *binaries;
    size_t binary_count;
    struct host_plugin *plugins;
    size_t plugin_count, plugin_room;
};

struct error *
host_open(const struct host_options *options, struct host **out)
{
    struct host *host = memory_zeroed(sizeof *host);
    host->options = *options;
    arena_init(&host->arena, NULL, 0, SIZE_MAX);
    struct error *error = host_temporary_make(&host->temporary, options->log);
    if (!error && options->uses_tls)
        error = host_identity_make(host->temporary.path, &host->identity);
    if (error)
        host_close(host);
    else
        *out = host;
    return error;
}

void
host_close(struct host *host)
{
    if (!host)
        return;
    host_temporary_remove(&host->temporary, host->options.log);
    host_identity_clear(&host->identity);
    free(host->plugins);
    arena_clear(&host->arena);
    free(host);
}

struct error *
host_start(struct host *host, const struct host_binary *binary, struct host_process **out)
{
    struct host_process_options options = {
        .path = binary->path,
        .name = binary->name,
        .directory = arena_print(&host->arena, "%s/%u", host->temporary.path, ++host->started),
        .identity = host->options.uses_tls ? &host->identity : NULL,
        .start_timeout_ms = host->options.start_timeout_ms,
        .runtime = host->options.runtime,
        .log = host->options.log,
    };
    return host_process_start(&options, out);
}

/* ---- the list of a binary ---- */

static struct host_plugin *
add_plugin(struct host *host)
{
    if (host->plugin_count == host->plugin_room) {
        host->plugin_room = host->plugin_room ? 2 * host->plugin_room : 16;
        host->plugins = memory_resize(host->plugins, host->plugin_room * sizeof *host->plugins);
    }
    return &host->plugins[host->plugin_count++];
}

static const char *
copy_text(struct host *host, const char *text)
{
    return arena_copy(&host->arena, text, strnlen(text, MAX_TEXT_BYTES));
}

static void
take_identifier(struct host *host, struct host_binary *binary,
                const Generated__PluginIdentifier *identifier)
{
    struct host_plugin *plugin = add_plugin(host);
    *plugin = (struct host_plugin){.binary = binary,
                                   .kind = copy_text(host, identifier->kind),
                                   .name = copy_text(host, identifier->name),
                                   .known_as = host_kinds_find(identifier->kind)};
    if (plugin->known_as == HOST_KIND_UNKNOWN)
        plugin->trouble = "this kind is not supported";
    else if (!host_kinds_is_name(identifier->name))
        plugin->trouble = "the name is not valid";
}

static struct error *
ask_for_list(struct host *host, struct host_binary *binary, struct host_process *process)
{
    Generated__Empty request = GENERATED__EMPTY__INIT;
    Generated__ListPluginsResponse *reply;
    struct call_options options = {.timeout_ns =
                                       host->options.start_timeout_ms * UINT64_C(1000000)};
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, LIST_BYTES);
    struct error *error = channel_call(host_process_channel(process),
                                       service_find_method("generated.PluginLister/ListPlugins"),
                                       &request.base, &options, &arena, &reply);
    if (error)
        return host_process_judge(process, error);
    if (reply->n_plugins > HOST_MAX_PLUGINS)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "plugin %s lists %zu plugins; a host takes at most %d of one binary",
                         binary->name, reply->n_plugins, HOST_MAX_PLUGINS);
    for (size_t i = 0; i < reply->n_plugins; i++)
        take_identifier(host, binary, reply->plugins[i]);
    binary->plugin_count = reply->n_plugins;
    return NULL;
}

/* ---- discovery ---- */

static void
take_list(struct host *host, struct host_binary *binary, struct host_process *process,
          struct error *error)
{
    if (!error)
        error = host_process_wait(process);
    if (!error)
        error = ask_for_list(host, binary, process);
    if (error) {
        log_debug(host->options.log, "plugin cannot be used", LOG_TEXT("error", error->message));
        binary->trouble = arena_string(&host->arena, error->message);
    }
    error_free(error);
}

static void
discover_some(struct host *host, struct host_binary *binaries, size_t count)
{
    struct host_process *processes[AT_ONCE] = {0};
    struct error *errors[AT_ONCE];
    for (size_t i = 0; i < count; i++)
        errors[i] = host_start(host, &binaries[i], &processes[i]);
    for (size_t i = 0; i < count; i++) {
        take_list(host, &binaries[i], processes[i], errors[i]);
        host_process_close(processes[i]);
    }
}

static int
compare_plugins(const void *left, const void *right)
{
    const struct host_plugin *a = left, *b = right;
    int order = strcmp(a->kind, b->kind);
    if (!order)
        order = strcmp(a->name, b->name);
    if (!order)
        order = strcmp(a->binary->path, b->binary->path);
    return order;
}

/* Of several with the same kind and name, the first may be used. */
static void
mark_doubles(struct host *host)
{
    if (host->plugin_count)
        qsort(host->plugins, host->plugin_count, sizeof *host->plugins, compare_plugins);
    for (size_t i = 1; i < host->plugin_count; i++) {
        const struct host_plugin *before = &host->plugins[i - 1];
        struct host_plugin *plugin = &host->plugins[i];
        if (!plugin->trouble && strcmp(before->kind, plugin->kind) == 0 &&
            strcmp(before->name, plugin->name) == 0)
            plugin->trouble = "another binary, or this one, has it already";
    }
}

static struct error *
find_binaries(struct host *host)
{
    char directory[PATH_MAX];
    const char **paths;
    if (!realpath(host->options.plugin_directory, directory))
        return error_from_errno(errno, "find the plugin directory %s",
                                host->options.plugin_directory);
    struct error *error = host_directory_list(directory, HOST_MAX_BINARIES, host->options.log,
                                              &host->arena, &paths, &host->binary_count);
    if (error)
        return error;
    host->binaries = arena_zeroed(&host->arena, host->binary_count * sizeof *host->binaries);
    for (size_t i = 0; i < host->binary_count; i++) {
        host->binaries[i].name = paths[i];
        host->binaries[i].path = arena_print(&host->arena, "%s/%s", directory, paths[i]);
    }
    return NULL;
}

struct error *
host_discover(struct host *host)
{
    struct error *error = find_binaries(host);
    for (size_t i = 0; !error && i < host->binary_count; i += AT_ONCE) {
        size_t left = host->binary_count - i;
        discover_some(host, host->binaries + i, left < AT_ONCE ? left : AT_ONCE);
    }
    mark_doubles(host);
    return error;
}

/* ---- what there is ---- */

const struct host_binary *
host_binaries(const struct host *host, size_t *count)
{
    *count = host->binary_count;
    return host->binaries;
}

const struct host_plugin *
host_plugins(const struct host *host, size_t *count)
{
    *count = host->plugin_count;
    return host->plugins;
}

const struct host_options *
host_get_options(const struct host *host)
{
    return &host->options;
}

static bool
is_snapshotter(const struct host_plugin *plugin)
{
    return !plugin->trouble && (plugin->known_as == HOST_KIND_SNAPSHOTTER ||
                                plugin->known_as == HOST_KIND_SNAPSHOTTER_V2);
}

static bool
has_name(const struct host_plugin *plugin, const char *name)
{
    size_t size = strlen(DEFAULT_DOMAIN);
    if (strchr(name, '/'))
        return strcmp(plugin->name, name) == 0;
    return strncmp(plugin->name, DEFAULT_DOMAIN, size) == 0 &&
           strcmp(plugin->name + size, name) == 0;
}

/* The names, each once, for an error. */
static void
print_names(const struct host *host, struct buffer *out)
{
    for (size_t i = 0; i < host->plugin_count && out->size < PATH_MAX; i++) {
        const struct host_plugin *plugin = &host->plugins[i];
        bool is_listed = false;
        for (size_t j = 0; j < i && !is_listed; j++)
            is_listed = is_snapshotter(&host->plugins[j]) &&
                        strcmp(host->plugins[j].name, plugin->name) == 0;
        if (is_snapshotter(plugin) && !is_listed)
            buffer_print(out, "%s%s", out->size ? ", " : "", plugin->name);
    }
}

static struct error *
not_found(const struct host *host, const char *name)
{
    struct buffer names AUTO(buffer_clear) = {0};
    print_names(host, &names);
    if (!names.size)
        return error_new(CODE_NOT_FOUND,
                         "there is no usable volume snapshotter in %s (see skycap velero host "
                         "list)",
                         host->options.plugin_directory);
    return error_new(CODE_NOT_FOUND, "there is no volume snapshotter \"%s\"; there are: %s", name,
                     buffer_text(&names));
}

static struct error *
ambiguous(const struct host *host)
{
    struct buffer names AUTO(buffer_clear) = {0};
    print_names(host, &names);
    return error_new(CODE_FAILED_PRECONDITION,
                     "there are several volume snapshotters; choose one with --plugin: %s",
                     buffer_text(&names));
}

struct error *
host_find_snapshotter(const struct host *host, const char *name, const struct host_plugin **out)
{
    const struct host_plugin *found = NULL;
    for (size_t i = 0; i < host->plugin_count; i++) {
        const struct host_plugin *plugin = &host->plugins[i];
        if (!is_snapshotter(plugin) || (name && !has_name(plugin, name)))
            continue;
        if (found && strcmp(found->name, plugin->name) != 0)
            return ambiguous(host);
        if (!found || plugin->known_as == HOST_KIND_SNAPSHOTTER_V2)
            found = plugin;
    }
    if (!found)
        return not_found(host, name ? name : "");
    *out = found;
    return NULL;
}
