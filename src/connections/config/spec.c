/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connection files: see spec.h.
 *
 * DESIGN. One function reads each key, or a few that belong together; the first error is reported.
 * Messages list all valid choices (keys, drivers, capabilities): a test compares them with
 * docs/connection.schema.json.
 */
#include "connections/config/spec.h"

#include <string.h>

#include "connections/config/spec_capabilities.h"
#include "connections/config/yaml.h"

#define DEFAULT_MAX_CALLS 64
#define DEFAULT_TIMEOUT_MS (5 * 60 * 1000)
#define LARGEST_PRIORITY 1000000
#define MAX_ALIASES 64
#define MAX_TOPOLOGIES 64
#define MAX_LABEL 63
#define MAX_TOPOLOGY_PREFIX 253
#define MAX_MAP_BYTES 4096 /* CSI's limit for a map */

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char *const known_keys[] = {
    "driver",  "options",      "default",  "priority", "labels",    "aliases", "parameters",
    "secrets", "capabilities", "capacity", "topology", "max-calls", "timeout", NULL,
};

static bool
consists_of(const char *text, const char *characters, size_t least, size_t most)
{
    size_t size = strlen(text);
    return size >= least && size <= most && strspn(text, characters) == size;
}

/* Every call with an id comes here. strspn would build a table of the characters each time. */
static bool
is_name(const char *name, size_t most, bool is_alias)
{
    size_t size = 0;
    for (; name[size]; size++) {
        char c = name[size];
        bool is_fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && size > 0) ||
                       (is_alias && c >= 'A' && c <= 'Z') ||
                       (is_alias && size > 0 && (c == '_' || c == '.'));
        if (!is_fine || size == most)
            return false;
    }
    return size > 0;
}

bool
spec_is_name(const char *name)
{
    return is_name(name, SPEC_MAX_NAME, false);
}

bool
spec_is_alias(const char *name)
{
    return is_name(name, SPEC_MAX_ALIAS, true);
}

bool
spec_has_alias(const struct connection_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->aliases.count; i++)
        if (strcmp(spec->aliases.items[i], name) == 0)
            return true;
    return false;
}

struct error *
spec_check_name(const char *name)
{
    if (spec_is_name(name))
        return NULL;
    struct buffer quoted AUTO(buffer_clear) = {0};
    settings_quote(&quoted, name);
    return error_new(CODE_INVALID_ARGUMENT,
                     "%s is not a connection name: use 1 to %d lowercase letters, digits and "
                     "dashes, and no dash at the start",
                     buffer_text(&quoted), SPEC_MAX_NAME);
}

/* ---- driver ---- */

static struct error *
read_driver(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    (void)arena;
    const char *name = NULL;
    struct error *error = settings_read_text(root, "driver", &name);
    if (error)
        return error;
    if (!name)
        return settings_refuse_key(root, "driver", "it is missing; there are: %s", driver_names());
    spec->driver = driver_find(name);
    if (spec->driver)
        return NULL;
    struct buffer quoted AUTO(buffer_clear) = {0};
    settings_quote(&quoted, name);
    return settings_refuse_key(root, "driver", "%s is none of: %s", buffer_text(&quoted),
                               driver_names());
}

static struct error *
read_options(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    (void)arena;
    struct error *error = settings_read_part(root, "options", SETTING_MAP, &spec->options);
    if (error || !spec->driver->check)
        return error;
    error = spec->driver->check(spec->options);
    const char *rest;
    if (!error || settings_line_of(error->message, &rest))
        return error;
    unsigned line = spec->options ? spec->options->line : settings_find(root, "driver")->line;
    return error_wrap(error, "line %u: options", line);
}

/* ---- name and selection ---- */

static struct error *
read_choice(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    (void)arena;
    struct error *error = settings_read_flag(root, "default", &spec->is_default);
    if (!error)
        error = settings_read_number(root, "priority", -LARGEST_PRIORITY, LARGEST_PRIORITY,
                                     &spec->priority);
    return error;
}

static struct error *
read_labels(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    static const char allowed[] = LETTERS_AND_DIGITS "._/-";
    struct error *error = settings_read_map(root, "labels", arena, &spec->labels);
    for (size_t i = 0; i < spec->labels.count && !error; i++) {
        const struct text_pair *pair = &spec->labels.pairs[i];
        if (!consists_of(pair->key, allowed, 1, MAX_LABEL) ||
            !consists_of(pair->value, allowed, 0, MAX_LABEL))
            error = settings_refuse(settings_find(settings_find(root, "labels"), pair->key),
                                    "a label and its value have at most %d letters, digits and "
                                    "characters of . _ / -",
                                    MAX_LABEL);
    }
    return error;
}

static struct error *
check_alias(const struct setting *root, const struct connection_spec *spec, size_t index)
{
    const char *alias = spec->aliases.items[index];
    if (!spec_is_alias(alias)) {
        struct buffer quoted AUTO(buffer_clear) = {0};
        settings_quote(&quoted, alias);
        return settings_refuse_key(root, "aliases",
                                   "%s is not an alias: use 1 to %d letters, digits and "
                                   ". _ -, with a letter or a digit at the start",
                                   buffer_text(&quoted), SPEC_MAX_ALIAS);
    }
    if (strcmp(alias, spec->name) == 0)
        return settings_refuse_key(root, "aliases", "%s is the connection's own name", alias);
    for (size_t i = 0; i < index; i++)
        if (strcmp(alias, spec->aliases.items[i]) == 0)
            return settings_refuse_key(root, "aliases", "%s is listed twice", alias);
    return NULL;
}

static struct error *
read_aliases(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    struct error *error = settings_read_list(root, "aliases", arena, &spec->aliases);
    if (!error && spec->aliases.count > MAX_ALIASES)
        return settings_refuse_key(root, "aliases", "there are more than %d", MAX_ALIASES);
    for (size_t i = 0; i < spec->aliases.count && !error; i++)
        error = check_alias(root, spec, i);
    return error;
}

/* ---- what goes to the driver ---- */

static struct error *
read_parameters(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    size_t size = 0;
    struct error *error = settings_read_map(root, "parameters", arena, &spec->parameters);
    for (size_t i = 0; i < spec->parameters.count && !error; i++) {
        const struct text_pair *pair = &spec->parameters.pairs[i];
        size += strlen(pair->key) + strlen(pair->value);
        if (!pair->key[0])
            error = settings_refuse_key(root, "parameters", "a name is empty");
    }
    if (!error && size > MAX_MAP_BYTES)
        error = settings_refuse_key(root, "parameters", "together they have more than %d bytes",
                                    MAX_MAP_BYTES);
    return error;
}

static struct error *
read_secrets(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    (void)arena;
    static const char *const words[] = {
        [SPEC_SECRETS_ALL] = "all",
        [SPEC_SECRETS_SCOPED] = "scoped",
        [SPEC_SECRETS_NONE] = "none",
        NULL,
    };
    size_t index = SPEC_SECRETS_ALL;
    struct error *error = settings_read_choice(root, "secrets", words, &index);
    spec->secrets = (enum spec_secrets)index;
    return error;
}

static struct error *
read_limits(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    (void)arena;
    struct error *error =
        settings_read_number(root, "max-calls", 1, SPEC_LARGEST_MAX_CALLS, &spec->max_calls);
    if (!error)
        error = settings_read_time(root, "timeout", &spec->timeout_ms);
    return error;
}

/* ---- capacity and topology ---- */

static struct error *
read_capacity(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    (void)arena;
    const char *text = "unlimited";
    struct error *error = settings_read_text(root, "capacity", &text);
    if (error || strcmp(text, "unlimited") == 0)
        return error;
    error = settings_read_size(root, "capacity", &spec->capacity_bytes);
    if (!error)
        return NULL;
    error_free(error);
    struct buffer quoted AUTO(buffer_clear) = {0};
    settings_quote(&quoted, text);
    return settings_refuse_key(root, "capacity",
                               "%s is no size: use \"unlimited\", a number of bytes, or like 10Gi",
                               buffer_text(&quoted));
}

static bool
is_topology_word(const char *text, size_t size, size_t most)
{
    static const char ends[] = LETTERS_AND_DIGITS;
    if (!size || size > most || !strchr(ends, text[0]) || !strchr(ends, text[size - 1]))
        return false;
    return strspn(text, LETTERS_AND_DIGITS "._-") >= size;
}

/* As CSI defines keys: a name, optionally with a domain and a slash before it. */
static bool
is_topology_key(const char *key)
{
    const char *slash = strchr(key, '/');
    const char *name = slash ? slash + 1 : key;
    return (!slash || is_topology_word(key, (size_t)(slash - key), MAX_TOPOLOGY_PREFIX)) &&
           is_topology_word(name, strlen(name), MAX_LABEL);
}

static struct error *
read_segments(const struct setting *one, struct arena *arena, struct text_map *out)
{
    struct error *error = settings_read_pairs(one, arena, out);
    if (error)
        return error;
    if (!out->count)
        return settings_refuse(one, "topology: the map is empty");
    for (const struct setting *pair = one->first; pair; pair = pair->next) {
        if (!is_topology_key(pair->key))
            return settings_refuse(pair, "a topology key looks like example.com/zone");
        if (!is_topology_word(pair->text, strlen(pair->text), MAX_LABEL))
            return settings_refuse(
                pair,
                "a topology value has at most %d letters, digits and characters of "
                ". _ -, with a letter or a digit at both ends",
                MAX_LABEL);
    }
    return NULL;
}

static struct error *
read_topology(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    const struct setting *list = NULL;
    struct error *error = settings_read_part(root, "topology", SETTING_LIST, &list);
    if (error || !list)
        return error;
    spec->topology = arena_zeroed(arena, MAX_TOPOLOGIES * sizeof *spec->topology);
    for (const struct setting *one = list->first; one && !error; one = one->next) {
        if (spec->topology_count == MAX_TOPOLOGIES)
            return settings_refuse(list, "there are more than %d", MAX_TOPOLOGIES);
        error = read_segments(one, arena, &spec->topology[spec->topology_count++]);
    }
    return error;
}

/* ---- all of it ---- */

static struct error *
read_keys(const struct setting *root, struct arena *arena, struct connection_spec *spec)
{
    static struct error *(*const readers[])(const struct setting *root, struct arena *arena,
                                            struct connection_spec *spec) = {
        read_driver,   read_options,  read_choice,
        read_labels,   read_aliases,  read_parameters,
        read_secrets,  read_limits,   spec_capabilities_read,
        read_capacity, read_topology,
    };
    struct error *error = settings_check_keys(root, known_keys);
    for (size_t i = 0; i < COUNT_OF(readers) && !error; i++)
        error = readers[i](root, arena, spec);
    return error;
}

struct error *
spec_read(const char *name, const char *text, size_t size, struct arena *arena,
          struct connection_spec **out)
{
    const struct setting *root = NULL;
    struct error *error = spec_check_name(name);
    if (!error && size > SPEC_MAX_FILE_BYTES)
        error = error_new(CODE_INVALID_ARGUMENT, "the file is larger than %u KiB",
                          SPEC_MAX_FILE_BYTES >> 10);
    if (!error)
        error = yaml_read(text, size, arena, &root);
    if (!error && root->kind != SETTING_MAP)
        error = settings_refuse(root, "this should be a map of keys, like \"driver: local\"");
    if (error)
        return error;
    struct connection_spec *spec = arena_zeroed(arena, sizeof *spec);
    spec->name = arena_string(arena, name);
    spec->capacity_bytes = SPEC_CAPACITY_UNLIMITED;
    spec->max_calls = DEFAULT_MAX_CALLS;
    spec->timeout_ms = DEFAULT_TIMEOUT_MS;
    error = read_keys(root, arena, spec);
    if (!error)
        *out = spec;
    return error;
}

bool
spec_same_driver(const struct connection_spec *a, const struct connection_spec *b)
{
    return a->driver == b->driver && strcmp(a->name, b->name) == 0 &&
           settings_equal(a->options, b->options) && a->max_calls == b->max_calls &&
           a->timeout_ms == b->timeout_ms;
}
