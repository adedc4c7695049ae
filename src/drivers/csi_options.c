/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of driver `csi`: see csi_options.h. */
#include "drivers/csi_options.h"

#include <string.h>

#include "rpc/address.h"

#define DEFAULT_INTERVAL_MS 10000u
#define DEFAULT_TIMEOUT_MS 5000u

static const char *
copy_text(struct arena *arena, const char *text)
{
    return text ? arena_string(arena, text) : NULL;
}

static void
copy_map(struct text_map *map, struct arena *arena)
{
    for (size_t i = 0; i < map->count; i++) {
        map->pairs[i].key = arena_string(arena, map->pairs[i].key);
        map->pairs[i].value = arena_string(arena, map->pairs[i].value);
    }
}

/* ---- where it is ---- */

static struct error *
check_endpoint(const struct setting *settings, const char *key, bool is_safe, bool *is_tcp)
{
    struct address address;
    const char *text = NULL;
    struct error *error = settings_read_text(settings, key, &text);
    if (error || !text)
        return error;
    struct error *wrong AUTO(error_cleanup) = address_parse(text, &address);
    if (wrong)
        return settings_refuse_key(settings, key, "%s", wrong->message);
    if (address_is_local(&address))
        return NULL;
    *is_tcp = true;
    if (!address.host[0] || !address.port)
        return settings_refuse_key(settings, key, "a host and a port to connect to are missing");
    if (is_safe)
        return NULL;
    return settings_refuse_key(settings, key,
                               "this goes over the network: say `tls:`, or `insecure: true`");
}

static struct error *
read_endpoints(const struct setting *settings, struct arena *arena, struct csi_options *out)
{
    bool is_insecure = false, is_tcp = false;
    struct error *error = settings_read_flag(settings, "insecure", &is_insecure);
    if (!error && is_insecure && out->has_tls)
        error = settings_refuse_key(settings, "insecure", "there is `tls:` too; say one of both");
    if (!error)
        error = check_endpoint(settings, "endpoint", is_insecure || out->has_tls, &is_tcp);
    if (!error)
        error = check_endpoint(settings, "node-endpoint", is_insecure || out->has_tls, &is_tcp);
    if (!error && !is_tcp && (is_insecure || out->has_tls))
        error = settings_refuse_key(settings, out->has_tls ? "tls" : "insecure",
                                    "this is for an endpoint like HOST:PORT, and there is none");
    const char *endpoint = NULL, *node_endpoint = NULL;
    if (!error)
        error = settings_read_text(settings, "endpoint", &endpoint);
    if (!error)
        error = settings_read_text(settings, "node-endpoint", &node_endpoint);
    if (!error && !endpoint && !node_endpoint)
        error = settings_refuse_key(settings, "endpoint",
                                    "it is missing: where is the driver's socket?");
    if (error)
        return error;
    bool is_one = !endpoint || !node_endpoint || !strcmp(endpoint, node_endpoint);
    out->endpoint = copy_text(arena, endpoint ? endpoint : node_endpoint);
    out->node_endpoint = is_one ? NULL : copy_text(arena, node_endpoint);
    return NULL;
}

/* ---- TLS ---- */

static struct error *
read_tls(const struct setting *settings, struct arena *arena, struct csi_options *out)
{
    static const char *const known[] = {"ca", "certificate", "key", "name", NULL};
    const struct setting *tls = NULL;
    struct tls_options *files = &out->tls;
    struct error *error = settings_read_part(settings, "tls", SETTING_MAP, &tls);
    if (error || !tls)
        return error;
    out->has_tls = true;
    error = settings_check_keys(tls, known);
    if (!error)
        error = settings_read_text(tls, "ca", &files->ca_file);
    if (!error)
        error = settings_read_text(tls, "certificate", &files->certificate_file);
    if (!error)
        error = settings_read_text(tls, "key", &files->key_file);
    if (!error)
        error = settings_read_text(tls, "name", &out->tls_name);
    for (size_t i = 0; i < 3 && !error; i++) {
        if (!settings_find(tls, known[i]))
            error = settings_refuse(tls, "%s is missing: the path of a file", known[i]);
    }
    files->ca_file = copy_text(arena, files->ca_file);
    files->certificate_file = copy_text(arena, files->certificate_file);
    files->key_file = copy_text(arena, files->key_file);
    out->tls_name = copy_text(arena, out->tls_name);
    return error;
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
        return settings_refuse_key(settings, "environment", "there is no `command:` that gets it");
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
    copy_map(&out->environment, arena);
    if (error || !settings_find(settings, "command"))
        return error;
    if (!list.count || list.items[0][0] != '/')
        return settings_refuse_key(settings, "command",
                                   "the first is a program with its whole path, like /usr/bin/x");
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
        error = read_tls(settings, arena, out);
    if (!error)
        error = read_endpoints(settings, arena, out);
    if (!error)
        error = read_command(settings, arena, out);
    if (!error)
        error = settings_read_time(settings, "probe-interval", &out->probe_interval_ms);
    if (!error)
        error = settings_read_time(settings, "probe-timeout", &out->probe_timeout_ms);
    if (!error)
        error = settings_read_map(settings, "node-ids", arena, &out->node_ids);
    copy_map(&out->node_ids, arena);
    return error;
}
