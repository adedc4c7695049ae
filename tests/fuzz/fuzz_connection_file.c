/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, taken as a connection file: they are refused with a line that is there, or they give a tree within its limits that reads the same
 * again when it is written; and from that a connection whose every value is in its range.
 */
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "connections/config/spec.h"
#include "connections/config/yaml.h"
#include "require.h"

static size_t
count_lines(const uint8_t *data, size_t size)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n' || data[i] == '\r' || data[i] == 0x85 || data[i] == 0xe2;
    return lines;
}

static void
check_error(const struct error *error, const uint8_t *data, size_t size)
{
    const char *rest;
    unsigned line = settings_line_of(error->message, &rest);
    REQUIRE(error->code == CODE_INVALID_ARGUMENT);
    REQUIRE(line >= 1 && line <= count_lines(data, size) + 1);
    REQUIRE(rest[0] && utf8_is_valid(error->message, strlen(error->message)));
}

/* ---- the tree ---- */

static unsigned
check_tree(const struct setting *setting, unsigned depth)
{
    unsigned nodes = 1;
    REQUIRE(depth <= YAML_MAX_DEPTH && setting->line >= 1);
    REQUIRE((setting->kind == SETTING_TEXT) == !!setting->text);
    REQUIRE(!setting->text ||
            (!setting->first && utf8_is_valid(setting->text, strlen(setting->text))));
    for (const struct setting *one = setting->first; one; one = one->next) {
        REQUIRE((setting->kind == SETTING_MAP) == !!one->key);
        nodes += check_tree(one, depth + 1) + !!one->key;
    }
    REQUIRE(nodes <= YAML_MAX_NODES);
    return nodes;
}

static void
print_text(struct buffer *out, const char *text)
{
    size_t size = strlen(text);
    buffer_append_byte(out, '"');
    for (size_t at = 0; at < size;) {
        uint32_t character = 0;
        at += utf8_decode(text + at, size - at, &character);
        if (character >= ' ' && character < 0x7f && character != '"' && character != '\\')
            buffer_append_byte(out, (uint8_t)character);
        else
            buffer_print(out, "\\U%08x", (unsigned)character);
    }
    buffer_append_byte(out, '"');
}

/* With `?` before keys: without it one may not be longer than 1024 characters. */
static void
print_tree(struct buffer *out, const struct setting *setting)
{
    bool is_map = setting->kind == SETTING_MAP;
    if (setting->kind == SETTING_TEXT) {
        print_text(out, setting->text);
        return;
    }
    buffer_append_byte(out, is_map ? '{' : '[');
    for (const struct setting *one = setting->first; one; one = one->next) {
        if (is_map) {
            buffer_append_text(out, "? ");
            print_text(out, one->key);
            buffer_append_text(out, " : ");
        }
        print_tree(out, one);
        buffer_append_text(out, one->next ? ", " : "");
    }
    buffer_append_byte(out, is_map ? '}' : ']');
}

static void
check_round_trip(const struct setting *root, struct arena *arena)
{
    struct buffer text AUTO(buffer_clear) = {0};
    const struct setting *again = NULL;
    print_tree(&text, root);
    struct error *error AUTO(error_cleanup) =
        yaml_read((const char *)text.bytes, text.size, arena, &again);
    REQUIRE(!error && settings_equal(root, again) && settings_equal(again, root));
}

/* ---- the connection ---- */

static void
check_spec(const struct connection_spec *spec)
{
    REQUIRE(spec->driver && driver_find(spec->driver->name) == spec->driver);
    REQUIRE(!spec->options || spec->options->kind == SETTING_MAP);
    REQUIRE(spec->max_calls >= 1 && spec->max_calls <= SPEC_LARGEST_MAX_CALLS);
    REQUIRE(spec->timeout_ms >= 1 && spec->timeout_ms <= 24u * 3600 * 1000);
    REQUIRE(spec->capacity_bytes >= 0 && spec->secrets <= SPEC_SECRETS_NONE);
    REQUIRE(!((spec->without_controller | spec->without_node | spec->without_group) & 1));
    for (size_t i = 0; i < spec->aliases.count; i++)
        REQUIRE(spec_is_alias(spec->aliases.items[i]));
    for (size_t i = 0; i < spec->topology_count; i++)
        REQUIRE(spec->topology[i].count);
    REQUIRE(spec_same_driver(spec, spec));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena AUTO(arena_clear);
    const struct setting *root = NULL;
    struct connection_spec *spec = NULL;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error AUTO(error_cleanup) = yaml_read((const char *)data, size, &arena, &root);
    REQUIRE(!error == !!root);
    struct error *refused AUTO(error_cleanup) =
        spec_read("fast", (const char *)data, size, &arena, &spec);
    REQUIRE(!refused == !!spec && (!spec || root));
    if (refused)
        check_error(refused, data, size);
    if (root) {
        check_tree(root, 1);
        check_round_trip(root, &arena);
    }
    if (spec)
        check_spec(spec);
    return 0;
}
