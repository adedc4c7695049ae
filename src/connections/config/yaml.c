/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as settings: see yaml.h.
 *
 * DESIGN. A recursive descent over libyaml's events, with a limit on the depth. libyaml's document
 * API was rejected: it expands aliases, and a file of a few lines can expand beyond all memory.
 */
#include "connections/config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/memory.h"
#include "base/utf8.h"

struct reader {
    yaml_parser_t parser;
    const char *text; /* the whole file */
    struct arena *arena;
    unsigned nodes;
};

static unsigned
line_of(const yaml_event_t *event)
{
    return (unsigned)event->start_mark.line + 1;
}

static unsigned
line_at(const char *text, size_t offset)
{
    unsigned line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static struct error *
refuse_at(unsigned line, const char *why)
{
    return error_new(CODE_INVALID_ARGUMENT, "line %u: %s", line, why);
}

/* ---- events ---- */

static struct error *
syntax_error(const struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        memory_exhausted();
    /* For invalid characters libyaml reports only the offset. */
    unsigned line = parser->error == YAML_READER_ERROR
                        ? line_at(reader->text, parser->problem_offset)
                        : (unsigned)parser->problem_mark.line + 1;
    return error_new(CODE_INVALID_ARGUMENT, "line %u: this is not YAML: %s%s%s%s", line,
                     parser->problem ? parser->problem : "it cannot be read",
                     parser->context ? " (" : "", parser->context ? parser->context : "",
                     parser->context ? ")" : "");
}

/* The caller deletes `event`, also after an error. */
static struct error *
next_event(struct reader *reader, yaml_event_t *event)
{
    *event = (yaml_event_t){0};
    return yaml_parser_parse(&reader->parser, event) ? NULL : syntax_error(reader);
}

/* ---- nodes ---- */

static struct error *read_node(struct reader *reader, const yaml_event_t *event, unsigned depth,
                               struct setting **out);

static const char *
anchor_of(const yaml_event_t *event)
{
    const yaml_char_t *anchor = event->type == YAML_SCALAR_EVENT ? event->data.scalar.anchor
                                : event->type == YAML_MAPPING_START_EVENT
                                    ? event->data.mapping_start.anchor
                                    : event->data.sequence_start.anchor;
    return (const char *)anchor;
}

static const char *
tag_of(const yaml_event_t *event)
{
    const yaml_char_t *tag = event->type == YAML_SCALAR_EVENT ? event->data.scalar.tag
                             : event->type == YAML_MAPPING_START_EVENT
                                 ? event->data.mapping_start.tag
                                 : event->data.sequence_start.tag;
    return (const char *)tag;
}

static struct error *
check_node(struct reader *reader, const yaml_event_t *event, unsigned depth)
{
    unsigned line = line_of(event);
    if (event->type == YAML_ALIAS_EVENT)
        return refuse_at(line, "aliases (*name) are not supported: write the value itself");
    if (anchor_of(event))
        return refuse_at(line, "anchors (&name) are not supported: write the value where it is "
                               "needed");
    if (tag_of(event))
        return refuse_at(line, "tags (!name) are not supported: leave it out");
    if (++reader->nodes > YAML_MAX_NODES)
        return error_new(CODE_INVALID_ARGUMENT, "line %u: there are more than %d values", line,
                         YAML_MAX_NODES);
    if (depth > YAML_MAX_DEPTH)
        return error_new(CODE_INVALID_ARGUMENT, "line %u: this is deeper than %d levels", line,
                         YAML_MAX_DEPTH);
    return NULL;
}

static bool
is_null(const yaml_event_t *event)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp((const char *)event->data.scalar.value, words[i]) == 0)
            return true;
    return false;
}

static struct error *
read_text(struct reader *reader, const yaml_event_t *event, const char **out)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length;
    if (memchr(text, '\0', size))
        return refuse_at(line_of(event), "texts with NUL (\\0) are not supported");
    if (is_null(event))
        return refuse_at(line_of(event), "the value is missing: write \"\" for an empty text");
    *out = arena_copy(reader->arena, text, size);
    return NULL;
}

/* The next item of a list; *out is NULL at its end. */
static struct error *
read_item(struct reader *reader, unsigned depth, struct setting **out)
{
    yaml_event_t event AUTO(yaml_event_delete);
    *out = NULL;
    struct error *error = next_event(reader, &event);
    if (error || event.type == YAML_SEQUENCE_END_EVENT)
        return error;
    return read_node(reader, &event, depth, out);
}

static struct error *
read_key(struct reader *reader, const yaml_event_t *event, unsigned depth, const char **out)
{
    struct error *error = check_node(reader, event, depth);
    if (error)
        return error;
    if (event->type != YAML_SCALAR_EVENT || is_null(event))
        return refuse_at(line_of(event), "a key must be a text");
    return read_text(reader, event, out);
}

/* The value of a key. Its line is the key's. */
static struct error *
read_value(struct reader *reader, unsigned depth, const struct setting *place, struct setting **out)
{
    yaml_event_t event AUTO(yaml_event_delete);
    struct error *error = next_event(reader, &event);
    if (!error && is_null(&event))
        error = settings_refuse(place, "there is no value: leave the key out, or write \"\" for an "
                                       "empty text");
    if (!error)
        error = read_node(reader, &event, depth, out);
    if (error)
        return error;
    (*out)->key = place->key;
    (*out)->line = place->line;
    return NULL;
}

/* The next pair of a map; *out is NULL at its end. */
static struct error *
read_pair(struct reader *reader, unsigned depth, struct setting **out)
{
    yaml_event_t key_event AUTO(yaml_event_delete);
    *out = NULL;
    struct error *error = next_event(reader, &key_event);
    if (error || key_event.type == YAML_MAPPING_END_EVENT)
        return error;
    const char *key;
    error = read_key(reader, &key_event, depth, &key);
    if (error)
        return error;
    return read_value(reader, depth, &(struct setting){.line = line_of(&key_event), .key = key},
                      out);
}

static int
compare_keys(const void *left, const void *right)
{
    const struct setting *const *a = left, *const *b = right;
    int order = strcmp((*a)->key, (*b)->key);
    return order ? order : (*a)->line < (*b)->line ? -1 : (*a)->line > (*b)->line;
}

/* By sorting: a map may have thousands of keys. */
static struct error *
check_unique(const struct setting *map, size_t count)
{
    const struct setting **sorted AUTO(memory_cleanup) = memory_new((count + 1) * sizeof *sorted);
    const struct setting **next = sorted;
    for (const struct setting *one = map->first; one; one = one->next)
        *next++ = one;
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            return settings_refuse(sorted[i], "the key occurs twice, first on line %u",
                                   sorted[i - 1]->line);
    return NULL;
}

static struct error *
read_children(struct reader *reader, unsigned depth, struct setting *parent)
{
    bool is_map = parent->kind == SETTING_MAP;
    const struct setting **tail = &parent->first;
    for (size_t count = 0;; count++) {
        struct setting *child;
        struct error *error =
            is_map ? read_pair(reader, depth + 1, &child) : read_item(reader, depth + 1, &child);
        if (error)
            return error;
        if (!child)
            return is_map ? check_unique(parent, count) : NULL;
        *tail = child;
        tail = &child->next;
    }
}

static struct error *
read_node(struct reader *reader, const yaml_event_t *event, unsigned depth, struct setting **out)
{
    struct error *error = check_node(reader, event, depth);
    if (error)
        return error;
    struct setting *node = arena_zeroed(reader->arena, sizeof *node);
    node->line = line_of(event);
    *out = node;
    if (event->type == YAML_SCALAR_EVENT) {
        node->kind = SETTING_TEXT;
        return read_text(reader, event, &node->text);
    }
    node->kind = event->type == YAML_MAPPING_START_EVENT ? SETTING_MAP : SETTING_LIST;
    return read_children(reader, depth, node);
}

/* ---- the file ---- */

static struct error *
read_root(struct reader *reader, struct setting **out)
{
    yaml_event_t event AUTO(yaml_event_delete);
    struct error *error = next_event(reader, &event);
    if (error)
        return error;
    return is_null(&event) ? check_node(reader, &event, 1) : read_node(reader, &event, 1, out);
}

/* One document, or none. */
static struct error *
read_stream(struct reader *reader, struct setting **out)
{
    for (;;) {
        yaml_event_t event AUTO(yaml_event_delete);
        struct error *error = next_event(reader, &event);
        if (error || event.type == YAML_STREAM_END_EVENT)
            return error;
        if (event.type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (reader->nodes)
            return refuse_at(line_of(&event), "a second document begins here (---): one file has "
                                              "one");
        error = read_root(reader, out);
        if (error)
            return error;
    }
}

static struct error *
check_bytes(const char *text, size_t size)
{
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    if (nul)
        return refuse_at(line_at(text, (size_t)(nul - text)), "there is a NUL byte here");
    for (size_t at = 0; at < size;) {
        uint32_t ignored;
        size_t step = utf8_decode(text + at, size - at, &ignored);
        if (!step)
            return refuse_at(line_at(text, at), "this is not UTF-8");
        at += step;
    }
    return NULL;
}

struct error *
yaml_read(const char *text, size_t size, struct arena *arena, const struct setting **out)
{
    struct error *error = check_bytes(text, size);
    if (error)
        return error;
    struct reader reader = {.text = text, .arena = arena};
    struct setting *root = NULL;
    if (!yaml_parser_initialize(&reader.parser))
        memory_exhausted();
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
    error = read_stream(&reader, &root);
    yaml_parser_delete(&reader.parser);
    if (!error && !root) {
        root = arena_zeroed(arena, sizeof *root);
        *root = (struct setting){.kind = SETTING_MAP, .line = 1};
    }
    if (!error)
        *out = root;
    return error;
}
