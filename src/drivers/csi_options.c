/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of driver `csi`: see csi_options.h. */
#include "drivers/csi_options.h"

#include <string.h>

#define DEFAULT_INTERVAL_MS 10000u
#define DEFAULT_TIMEOUT_MS 5000u

static const char *
copy_text(struct arena *arena, const char *text)
{
    return text ? arena_string(arena, text) : NULL;
}

/* ---- endpoints ---- */

static struct error *
read_endpoints(const struct setting *settings, struct arena *arena, struct csi_options *out)
{
    bool is_insecure = false, is_tcp = false;
    struct error *error = endpoint_settings_read_tls(settings, arena, &out->tls);
    if (!error)
        error = endpoint_settings_read_insecure(settings, &out->tls, &is_insecure);
    bool is_safe = is_insecure || out->tls.is_given;
    if (!error)
        error = endpoint_settings_check(settings, "endpoint", is_safe, &is_tcp);
    if (!error)
        error = endpoint_settings_check(settings, "node-endpoint", is_safe, &is_tcp);
    if (!error)
        error = endpoint_settings_check_use(settings, is_tcp);
    const char *endpoint = NULL, *node_endpoint = NULL;
    if (!error)
        error = settings_read_text(settings, "endpoint", &endpoint);
    if (!error)
        error = settings_read_text(settings, "node-endpoint", &node_endpoint);
    if (!error && !endpoint && !node_endpoint)
        error = settings_refuse_key(settings, "endpoint",
                                    "it is missing: set the address of the driver's socket");
    if (error)
        return error;
    bool is_one = !endpoint || !node_endpoint || !strcmp(endpoint, node_endpoint);
    out->endpoint = copy_text(arena, endpoint ? endpoint : node_endpoint);
    out->node_endpoint = is_one ? NULL : copy_text(arena, node_endpoint);
    return NULL;
}

/* ---- the program ---- */

static struct error *
check_environment(const struct setting *settings, const struct text_map *environment)
{
    for (size_t i = 0; i < environment->count; i++) {
        const char *name = environment->pairs[i].key;
        if (!name[0] || strchr(name, '='))
            return settings_refuse_key(settings, "environment", "a name is empty or has a '='");
    }
    if (environment->count && !settings_find(settings, "command"))
        return settings_refuse_key(settings, "environment", "it needs `command:`");
    return NULL;
}

static struct error *
read_command(const struct setting *settings, struct arena *arena, struct csi_options *out)
{
    struct text_list list = {0};
    struct error *error = settings_read_list(settings, "command", arena, &list);
    if (!error)
        error = settings_read_map(settings, "environment", arena, &out->environment);
    if (!error)
        error = check_environment(settings, &out->environment);
    out->environment = text_map_copy(&out->environment, arena);
    if (error || !settings_find(settings, "command"))
        return error;
    if (!list.count || list.items[0][0] != '/')
        return settings_refuse_key(
            settings, "command",
            "the first item is the absolute path of a program, like /usr/bin/x");
    out->command = arena_zeroed(arena, (list.count + 1) * sizeof *out->command);
    for (size_t i = 0; i < list.count; i++)
        out->command[i] = arena_string(arena, list.items[i]);
    return NULL;
}

struct error *
csi_options_read(const struct setting *settings, struct arena *arena, struct csi_options *out)
{
    static const char *const known[] = {
        "endpoint",      "node-endpoint", "command", "environment", "probe-interval",
        "probe-timeout", "node-ids",      "tls",     "insecure",    NULL};
    *out = (struct csi_options){
        .probe_interval_ms = DEFAULT_INTERVAL_MS,
        .probe_timeout_ms = DEFAULT_TIMEOUT_MS,
    };
    struct error *error = settings_check_keys(settings, known);
    if (!error)
        error = read_endpoints(settings, arena, out);
    if (!error)
        error = read_command(settings, arena, out);
    if (!error)
        error = settings_read_time(settings, "probe-interval", &out->probe_interval_ms);
    if (!error)
        error = settings_read_time(settings, "probe-timeout", &out->probe_timeout_ms);
    if (!error)
        error = settings_read_map(settings, "node-ids", arena, &(struct text_map){0});
    return error;
}

struct error *
csi_options_check(const struct setting *settings)
{
    struct csi_options options;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return csi_options_read(settings, &arena, &options);
}

const char *
csi_options_server(const struct setting *settings, const char *node_id, struct arena *arena)
{
    (void)node_id;
    struct csi_options options;
    struct error *error AUTO(error_cleanup) = csi_options_read(settings, arena, &options);
    return error ? NULL : endpoint_settings_server(options.endpoint, arena);
}
