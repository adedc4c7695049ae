/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of driver `oim`: see oim_options.h. */
#include "drivers/oim_options.h"

#define DEFAULT_INTERVAL_MS 10000u
#define DEFAULT_TIMEOUT_MS 5000u

/* ---- the target ---- */

static struct error *
check_target(const struct setting *settings)
{
    bool has_registry = settings_find(settings, "registry");
    bool has_endpoint = settings_find(settings, "endpoint");
    if (has_registry != has_endpoint)
        return NULL;
    return settings_refuse_key(settings, "registry",
                               has_registry
                                   ? "there is `endpoint:` too; use only one"
                                   : "it is missing; or say `endpoint:`, a controller's own");
}

static struct error *
read_target(const struct setting *settings, struct arena *arena, struct oim_options *out)
{
    bool is_insecure = false, is_tcp = false;
    struct error *error = check_target(settings);
    if (!error)
        error = endpoint_settings_read_tls(settings, arena, &out->tls);
    if (!error)
        error = endpoint_settings_read_insecure(settings, &out->tls, &is_insecure);
    out->is_registry = settings_find(settings, "registry");
    const char *key = out->is_registry ? "registry" : "endpoint";
    if (!error)
        error = endpoint_settings_check(settings, key, is_insecure || out->tls.is_given, &is_tcp);
    if (!error)
        error = endpoint_settings_check_use(settings, is_tcp);
    if (!error)
        error = settings_read_text(settings, key, &out->target);
    if (!error)
        out->target = arena_string(arena, out->target);
    return error;
}

static struct error *
read_controller(const struct setting *settings, struct arena *arena, struct oim_options *out)
{
    struct error *error = settings_read_text(settings, "controller", &out->controller);
    if (error || !out->controller)
        return error;
    if (!out->controller[0])
        return settings_refuse_key(settings, "controller",
                                   "it is empty; leave it out for the node's id");
    out->controller = arena_string(arena, out->controller);
    return NULL;
}

/* ---- emulation ---- */

static struct error *
read_emulation(const struct setting *settings, struct arena *arena, struct oim_options *out)
{
    size_t index = 0;
    bool is_given = settings_find(settings, "emulate");
    struct error *error = settings_read_choice(settings, "emulate", oim_emulation_names, &index);
    if (!error)
        error = settings_read_map(settings, "clusters", arena, &out->clusters);
    if (!error && settings_find(settings, "clusters") && !is_given)
        error = settings_refuse_key(settings, "clusters", "this is for `emulate: ceph-csi`");
    if (error)
        return error;
    out->emulation = is_given ? &oim_emulations[index] : NULL;
    out->clusters = text_map_copy(&out->clusters, arena);
    return NULL;
}

static struct error *
read_sysfs(const struct setting *settings, struct arena *arena, struct oim_options *out)
{
    struct error *error = settings_read_text(settings, "sysfs", &out->sysfs);
    if (!error && out->sysfs[0] != '/')
        error = settings_refuse_key(settings, "sysfs", "this is not an absolute path");
    out->sysfs = arena_string(arena, out->sysfs);
    return error;
}

struct error *
oim_options_read(const struct setting *settings, struct arena *arena, struct oim_options *out)
{
    static const char *const known[] = {"registry",      "endpoint", "controller", "tls",
                                        "insecure",      "emulate",  "clusters",   "probe-interval",
                                        "probe-timeout", "sysfs",    NULL};
    *out = (struct oim_options){
        .probe_interval_ms = DEFAULT_INTERVAL_MS,
        .probe_timeout_ms = DEFAULT_TIMEOUT_MS,
        .sysfs = "/sys",
    };
    struct error *error = settings_check_keys(settings, known);
    if (!error)
        error = read_target(settings, arena, out);
    if (!error)
        error = read_controller(settings, arena, out);
    if (!error)
        error = read_emulation(settings, arena, out);
    if (!error)
        error = settings_read_time(settings, "probe-interval", &out->probe_interval_ms);
    if (!error)
        error = settings_read_time(settings, "probe-timeout", &out->probe_timeout_ms);
    return error ? error : read_sysfs(settings, arena, out);
}

const char *
oim_options_server(const struct setting *settings, const char *node_id, struct arena *arena)
{
    struct oim_options options;
    struct error *error AUTO(error_cleanup) = oim_options_read(settings, arena, &options);
    const char *server =
        error || options.emulation ? NULL : endpoint_settings_server(options.target, arena);
    if (!server || !options.is_registry)
        return server;
    return arena_print(arena, "%s#%s", server, options.controller ? options.controller : node_id);
}
