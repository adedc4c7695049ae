/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a tree of settings: see settings.h. */
#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/size_text.h"
#include "base/utf8.h"

#define LONGEST_QUOTE 64 /* bytes of a text that a message quotes */
#define DAY_MS (24 * 3600 * 1000)

/* ---- errors ---- */

void
settings_quote(struct buffer *out, const char *text)
{
    size_t size = strlen(text), cut = utf8_cut(text, size, LONGEST_QUOTE);
    json_append_string(out, text, cut);
    if (cut < size)
        buffer_append_text(out, "...");
}

/* Quotes unusual keys only. */
static void
append_key(struct buffer *out, const char *key)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-";
    size_t size = strlen(key);
    if (size && size <= LONGEST_QUOTE && strspn(key, plain) == size)
        buffer_append_text(out, key);
    else
        settings_quote(out, key);
    buffer_append_text(out, ": ");
}

static struct error *
refuse(unsigned line, const char *key, const char *format, va_list arguments)
{
    struct buffer head AUTO(buffer_clear) = {0};
    char *message AUTO(memory_cleanup) = NULL;
    if (vasprintf(&message, format, arguments) < 0)
        memory_exhausted();
    if (key)
        append_key(&head, key);
    return error_new(CODE_INVALID_ARGUMENT, "line %u: %s%s", line, buffer_text(&head), message);
}

struct error *
settings_refuse(const struct setting *setting, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct error *error = refuse(setting->line, setting->key, format, arguments);
    va_end(arguments);
    return error;
}

struct error *
settings_refuse_key(const struct setting *map, const char *key, const char *format, ...)
{
    const struct setting *found = settings_find(map, key);
    unsigned line = found ? found->line : map ? map->line : 1;
    va_list arguments;
    va_start(arguments, format);
    struct error *error = refuse(line, key, format, arguments);
    va_end(arguments);
    return error;
}

unsigned
settings_line_of(const char *message, const char **rest)
{
    static const char head[] = "line ";
    const char *digits = message + strlen(head);
    char *end = NULL;
    *rest = message;
    if (strncmp(message, head, strlen(head)) != 0 || !isdigit((unsigned char)digits[0]))
        return 0;
    unsigned long line = strtoul(digits, &end, 10);
    if (line > UINT_MAX || strncmp(end, ": ", 2) != 0)
        return 0;
    *rest = end + 2;
    return (unsigned)line;
}

/* "KEY: "TEXT" is no WANTED". */
static struct error *
refuse_text(const struct setting *setting, const char *wanted)
{
    struct buffer text AUTO(buffer_clear) = {0};
    settings_quote(&text, setting->text);
    return settings_refuse(setting, "%s is no %s", buffer_text(&text), wanted);
}

static const char *
words_as_text(const char *const *words, struct buffer *out)
{
    for (size_t i = 0; words[i]; i++)
        buffer_print(out, "%s%s", i ? ", " : "", words[i]);
    return buffer_text(out);
}

/* ---- the tree ---- */

const struct setting *
settings_find(const struct setting *map, const char *key)
{
    if (!map || map->kind != SETTING_MAP)
        return NULL;
    for (const struct setting *one = map->first; one; one = one->next)
        if (strcmp(one->key, key) == 0)
            return one;
    return NULL;
}

static size_t
count_of(const struct setting *parent)
{
    size_t count = 0;
    for (const struct setting *one = parent->first; one; one = one->next)
        count++;
    return count;
}

static bool
lists_equal(const struct setting *a, const struct setting *b)
{
    const struct setting *left = a->first, *right = b->first;
    while (left && right && settings_equal(left, right)) {
        left = left->next;
        right = right->next;
    }
    return !left && !right;
}

static bool
maps_equal(const struct setting *a, const struct setting *b)
{
    if (count_of(a) != count_of(b))
        return false;
    for (const struct setting *one = a->first; one; one = one->next) {
        const struct setting *other = settings_find(b, one->key);
        if (!other || !settings_equal(one, other))
            return false;
    }
    return true;
}

bool
settings_equal(const struct setting *a, const struct setting *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case SETTING_TEXT:
        return strcmp(a->text, b->text) == 0;
    case SETTING_LIST:
        return lists_equal(a, b);
    case SETTING_MAP:
        return maps_equal(a, b);
    }
    return false;
}

static bool
is_among(const char *word, const char *const *words, size_t *index)
{
    for (size_t i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0) {
            *index = i;
            return true;
        }
    return false;
}

struct error *
settings_check_keys(const struct setting *map, const char *const *known)
{
    size_t ignored;
    for (const struct setting *one = map ? map->first : NULL; one; one = one->next) {
        if (is_among(one->key, known, &ignored))
            continue;
        struct buffer key AUTO(buffer_clear) = {0};
        struct buffer keys AUTO(buffer_clear) = {0};
        settings_quote(&key, one->key);
        return error_new(CODE_INVALID_ARGUMENT, "line %u: %s is not known here; there are: %s",
                         one->line, buffer_text(&key), words_as_text(known, &keys));
    }
    return NULL;
}

/* ---- readers ---- */

static struct error *
check_kind(const struct setting *setting, enum setting_kind kind)
{
    static const char *const wanted[] = {
        [SETTING_TEXT] = "one text",
        [SETTING_LIST] = "a list",
        [SETTING_MAP] = "a map, like {key: value}",
    };
    static const char *const got[] = {
        [SETTING_TEXT] = "a text",
        [SETTING_LIST] = "a list",
        [SETTING_MAP] = "a map",
    };
    if (setting->kind == kind)
        return NULL;
    return settings_refuse(setting, "this is %s, and should be %s", got[setting->kind],
                           wanted[kind]);
}

/* `*out` is NULL if the key is absent. */
static struct error *
find_part(const struct setting *map, const char *key, enum setting_kind kind,
          const struct setting **out)
{
    *out = settings_find(map, key);
    return *out ? check_kind(*out, kind) : NULL;
}

struct error *
settings_read_part(const struct setting *map, const char *key, enum setting_kind kind,
                   const struct setting **out)
{
    const struct setting *found;
    struct error *error = find_part(map, key, kind, &found);
    if (!error && found)
        *out = found;
    return error;
}

struct error *
settings_read_text(const struct setting *map, const char *key, const char **out)
{
    const struct setting *found;
    struct error *error = find_part(map, key, SETTING_TEXT, &found);
    if (!error && found)
        *out = found->text;
    return error;
}

struct error *
settings_read_choice(const struct setting *map, const char *key, const char *const *words,
                     size_t *out)
{
    const struct setting *found;
    struct error *error = find_part(map, key, SETTING_TEXT, &found);
    if (error || !found || is_among(found->text, words, out))
        return error;
    struct buffer text AUTO(buffer_clear) = {0};
    struct buffer all AUTO(buffer_clear) = {0};
    settings_quote(&text, found->text);
    return settings_refuse(found, "%s is none of: %s", buffer_text(&text),
                           words_as_text(words, &all));
}

struct error *
settings_read_flag(const struct setting *map, const char *key, bool *out)
{
    static const char *const words[] = {"false", "true", NULL};
    size_t index = *out;
    struct error *error = settings_read_choice(map, key, words, &index);
    *out = index == 1;
    return error;
}

static bool
is_decimal(const char *text)
{
    const char *digits = text + (text[0] == '-');
    size_t size = strspn(digits, "0123456789");
    return size && !digits[size] && (digits[0] != '0' || (size == 1 && text[0] != '-'));
}

struct error *
settings_read_number(const struct setting *map, const char *key, int64_t min, int64_t max,
                     int64_t *out)
{
    const struct setting *found;
    struct error *error = find_part(map, key, SETTING_TEXT, &found);
    if (error || !found)
        return error;
    errno = 0;
    long long number = is_decimal(found->text) ? strtoll(found->text, NULL, 10) : 0;
    if (!is_decimal(found->text) || errno || number < min || number > max) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "number from %" PRId64 " to %" PRId64, min, max);
        return refuse_text(found, wanted);
    }
    *out = number;
    return NULL;
}

struct error *
settings_read_size(const struct setting *map, const char *key, int64_t *out)
{
    const struct setting *found;
    struct error *error = find_part(map, key, SETTING_TEXT, &found);
    if (error || !found)
        return error;
    struct error *wrong AUTO(error_cleanup) = size_text_parse(found->text, out);
    return wrong ? refuse_text(found, "size: use a number of bytes, or like 10Gi") : NULL;
}

/* 0: it is not a time. */
static uint32_t
parse_time(const char *text)
{
    static const struct {
        const char *name;
        uint32_t milliseconds;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}};
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return 0;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    for (size_t i = 0; i < COUNT_OF(units) && !errno; i++)
        if (strcmp(end, units[i].name) == 0 && number <= DAY_MS / units[i].milliseconds)
            return (uint32_t)number * units[i].milliseconds;
    return 0;
}

struct error *
settings_read_time(const struct setting *map, const char *key, uint32_t *milliseconds)
{
    const struct setting *found;
    struct error *error = find_part(map, key, SETTING_TEXT, &found);
    if (error || !found)
        return error;
    uint32_t time_ms = parse_time(found->text);
    if (!time_ms)
        return refuse_text(found, "time from 1ms to 24h: use a number with ms, s, m or h behind");
    *milliseconds = time_ms;
    return NULL;
}

struct error *
settings_read_pairs(const struct setting *map, struct arena *arena, struct text_map *out)
{
    struct error *error = check_kind(map, SETTING_MAP);
    struct text_pair *pairs = NULL;
    size_t count = 0;
    if (!error)
        pairs = arena_alloc(arena, count_of(map) * sizeof *pairs);
    for (const struct setting *one = map->first; one && !error; one = one->next) {
        error = check_kind(one, SETTING_TEXT);
        if (!error)
            pairs[count++] = (struct text_pair){one->key, one->text};
    }
    if (!error)
        *out = text_map_of(pairs, count, arena);
    return error;
}

struct error *
settings_read_map(const struct setting *map, const char *key, struct arena *arena,
                  struct text_map *out)
{
    const struct setting *found = settings_find(map, key);
    return found ? settings_read_pairs(found, arena, out) : NULL;
}

/* An item has no key of its own, so the error names the list's. */
static struct error *
check_item(const struct setting *list, const struct setting *item)
{
    if (item->kind == SETTING_TEXT)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "line %u: %s: each item of the list should be one text",
                     item->line, list->key);
}

struct error *
settings_read_list(const struct setting *map, const char *key, struct arena *arena,
                   struct text_list *out)
{
    const struct setting *found = settings_find(map, key);
    if (!found)
        return NULL;
    if (found->kind == SETTING_TEXT) {
        out->items = arena_alloc(arena, sizeof *out->items);
        out->items[0] = found->text;
        out->count = 1;
        return NULL;
    }
    struct error *error = check_kind(found, SETTING_LIST);
    struct text_list list = {0};
    if (!error)
        list.items = arena_alloc(arena, count_of(found) * sizeof *list.items);
    for (const struct setting *one = found->first; one && !error; one = one->next) {
        error = check_item(found, one);
        if (!error)
            list.items[list.count++] = one->text;
    }
    if (!error)
        *out = list;
    return error;
}
