/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of the plugin: one as Velero's last Init said, and one as the environment says. Calls
 * in progress keep the link that they began with.
 */
#include "velero/plugin_internal.h"

struct error *
plugin_set_location(struct plugin *plugin, const struct plugin_settings *settings)
{
    struct link *link, *before = NULL;
    pthread_mutex_lock(&plugin->lock);
    bool is_same =
        plugin->location && plugin_settings_equal(link_settings(plugin->location), settings);
    pthread_mutex_unlock(&plugin->lock);
    if (is_same)
        return NULL;
    struct error *error = link_open(plugin->runtime, settings, &link);
    if (error)
        return error;
    pthread_mutex_lock(&plugin->lock);
    before = plugin->location;
    plugin->location = link;
    pthread_mutex_unlock(&plugin->lock);
    link_release(before);
    return NULL;
}

struct error *
plugin_hold_actions(struct plugin *plugin, struct link **out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct plugin_settings settings;
    struct error *error = NULL;
    pthread_mutex_lock(&plugin->lock);
    if (!plugin->actions) {
        error = plugin_settings_read(NULL, &arena, &settings);
        if (!error)
            error = link_open(plugin->runtime, &settings, &plugin->actions);
    }
    if (!error)
        *out = link_hold(plugin->actions);
    pthread_mutex_unlock(&plugin->lock);
    return error;
}

struct error *
plugin_hold_location(struct plugin *plugin, struct link **out)
{
    pthread_mutex_lock(&plugin->lock);
    *out = plugin->location ? link_hold(plugin->location) : NULL;
    pthread_mutex_unlock(&plugin->lock);
    return *out ? NULL : plugin_hold_actions(plugin, out);
}
