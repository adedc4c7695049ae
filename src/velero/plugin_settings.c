/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the plugin: see plugin_settings.h. */
#include "velero/plugin_settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define DEFAULT_DRIVER "csi.skycap.dev"
#define DEFAULT_TIMEOUT_S "30"
#define LONGEST_TIMEOUT_S 3600

/* Velero adds it if the location has a credential. There is nothing in it for us. */
#define CREDENTIALS_KEY "credentialsFile"

static const struct known {
    const char *key;
    const char *variable;
    size_t offset;
    const char *otherwise;
} known[] = {
    {"endpoint", "SKYCAP_ENDPOINT", offsetof(struct plugin_settings, endpoint), NULL},
    {"tls-ca", "SKYCAP_TLS_CA", offsetof(struct plugin_settings, tls_ca), NULL},
    {"tls-cert", "SKYCAP_TLS_CERT", offsetof(struct plugin_settings, tls_cert), NULL},
    {"tls-key", "SKYCAP_TLS_KEY", offsetof(struct plugin_settings, tls_key), NULL},
    {"tls-name", "SKYCAP_TLS_NAME", offsetof(struct plugin_settings, tls_name), NULL},
    {"driver", "SKYCAP_DRIVER", offsetof(struct plugin_settings, driver), DEFAULT_DRIVER},
    {"timeout", "SKYCAP_TIMEOUT", offsetof(struct plugin_settings, timeout), DEFAULT_TIMEOUT_S},
};

static const char **
place_of(const struct known *setting, const struct plugin_settings *settings)
{
    return (const char **)(void *)((char *)settings + setting->offset);
}

/* An empty value is none. */
static const char *
find_value(const struct known *setting, const struct text_map *config)
{
    const char *value = config ? text_map_find(config, setting->key) : NULL;
    if (!value || !value[0])
        value = getenv(setting->variable);
    return value && value[0] ? value : setting->otherwise;
}

bool
plugin_settings_has_environment(void)
{
    return find_value(&known[0], NULL) != NULL;
}

static bool
is_known(const char *key)
{
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strcmp(key, known[i].key) == 0)
            return true;
    return strcmp(key, CREDENTIALS_KEY) == 0;
}

/* Velero's own plugins use the same words. */
static struct error *
check_keys(const struct text_map *config)
{
    struct buffer unknown AUTO(buffer_clear) = {0};
    for (size_t i = 0; config && i < config->count && unknown.size < 1000; i++)
        if (!is_known(config->pairs[i].key))
            buffer_print(&unknown, "%s%.100s", unknown.size ? ", " : "", config->pairs[i].key);
    if (!unknown.size)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "config has invalid keys %s; known are endpoint, tls-ca, tls-cert, tls-key, "
                     "tls-name, driver and timeout",
                     buffer_text(&unknown));
}

static struct error *
read_timeout(struct plugin_settings *settings)
{
    char *end;
    errno = 0;
    unsigned long seconds = strtoul(settings->timeout, &end, 10);
    if (errno || *end || settings->timeout[0] == '-' || !seconds || seconds > LONGEST_TIMEOUT_S)
        return error_new(CODE_INVALID_ARGUMENT,
                         "timeout: \"%.32s\" is no number of seconds from 1 to %d",
                         settings->timeout, LONGEST_TIMEOUT_S);
    settings->timeout_ms = seconds * 1000;
    return NULL;
}

static struct error *
check(const struct plugin_settings *settings)
{
    if (!settings->endpoint)
        return error_new(CODE_FAILED_PRECONDITION,
                         "no endpoint: set `endpoint` in the configuration of the "
                         "VolumeSnapshotLocation, or SKYCAP_ENDPOINT in Velero's environment");
    if (!settings->tls_ca != !settings->tls_cert || !settings->tls_ca != !settings->tls_key)
        return error_new(CODE_INVALID_ARGUMENT, "tls-ca, tls-cert and tls-key go together");
    return NULL;
}

struct error *
plugin_settings_read(const struct text_map *config, struct arena *arena,
                     struct plugin_settings *out)
{
    *out = (struct plugin_settings){0};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const char *value = find_value(&known[i], config);
        *place_of(&known[i], out) = value ? arena_string(arena, value) : NULL;
    }
    struct error *error = check_keys(config);
    if (!error)
        error = read_timeout(out);
    return error ? error : check(out);
}

struct plugin_settings
plugin_settings_copy(const struct plugin_settings *settings, struct arena *arena)
{
    struct plugin_settings copy = *settings;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const char **text = place_of(&known[i], &copy);
        *text = *text ? arena_string(arena, *text) : NULL;
    }
    return copy;
}

bool
plugin_settings_equal(const struct plugin_settings *a, const struct plugin_settings *b)
{
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const char *one = *place_of(&known[i], a), *other = *place_of(&known[i], b);
        if (!one != !other || (one && strcmp(one, other) != 0))
            return false;
    }
    return true;
}
