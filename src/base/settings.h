/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a file: a tree of texts, lists and maps, each with its line number. It lives in
 * an arena and does not change after it was read (by connections/config/yaml.h).
 *
 * The readers leave *out as it is if the key is absent. What cannot be read is INVALID_ARGUMENT,
 * with the line, the key and what would be right: "line 4: max-calls: \"many\" is no number from 1
 * to 1024".
 */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text_map.h"

enum setting_kind { SETTING_TEXT, SETTING_LIST, SETTING_MAP };

struct setting {
    enum setting_kind kind;
    unsigned line;               /* from 1 */
    const char *key;             /* in a map, where keys are unique */
    const char *text;            /* of a text */
    const struct setting *first; /* of a list or a map, in the order of the file */
    const struct setting *next;  /* the next sibling */
};

/* `map` may be NULL: it is empty. */
const struct setting *settings_find(const struct setting *map, const char *key);

/* Whether two trees are the same, apart from their lines. Either may be NULL. */
bool settings_equal(const struct setting *a, const struct setting *b);

/*
 * Allows only these keys, NULL at the end; the error names the first unknown key, and those that
 * are known.
 */
MUST_CHECK struct error *settings_check_keys(const struct setting *map, const char *const *known);

/* ---- readers ---- */

MUST_CHECK struct error *settings_read_text(const struct setting *map, const char *key,
                                            const char **out);
/* true or false. */
MUST_CHECK struct error *settings_read_flag(const struct setting *map, const char *key, bool *out);
/* Decimal, without leading zeros, which some YAML readers take for octal. */
MUST_CHECK struct error *settings_read_number(const struct setting *map, const char *key,
                                              int64_t min, int64_t max, int64_t *out);
/* "100Gi", as base/size_text.h reads it. */
MUST_CHECK struct error *settings_read_size(const struct setting *map, const char *key,
                                            int64_t *out);
/* "500ms", "30s", "2m", "1h"; from 1 ms to a day. */
MUST_CHECK struct error *settings_read_time(const struct setting *map, const char *key,
                                            uint32_t *milliseconds);
/* One of these words, NULL at the end; returns its index. */
MUST_CHECK struct error *settings_read_choice(const struct setting *map, const char *key,
                                              const char *const *words, size_t *out);
/* A map of texts. */
MUST_CHECK struct error *settings_read_map(const struct setting *map, const char *key,
                                           struct arena *arena, struct text_map *out);
/* A list of texts; a single text is a list of one. */
MUST_CHECK struct error *settings_read_list(const struct setting *map, const char *key,
                                            struct arena *arena, struct text_list *out);
/* The list or the map itself. */
MUST_CHECK struct error *settings_read_part(const struct setting *map, const char *key,
                                            enum setting_kind kind, const struct setting **out);
/* The map itself as pairs of texts. */
MUST_CHECK struct error *settings_read_pairs(const struct setting *map, struct arena *arena,
                                             struct text_map *out);

/* ---- errors ---- */

/* INVALID_ARGUMENT "line N: KEY: ...", without the key if the setting has none. */
MUST_CHECK NEVER_NULL struct error *settings_refuse(const struct setting *setting,
                                                    const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * INVALID_ARGUMENT "line N: KEY: ..." for a key of the map. If the key is absent, the line is that
 * of the map, or 1.
 */
MUST_CHECK NEVER_NULL struct error *settings_refuse_key(const struct setting *map, const char *key,
                                                        const char *format, ...) PRINTF_LIKE(3, 4);

/* The line number at the beginning of such a message; `*rest` is what follows. 0: there is none. */
unsigned settings_line_of(const char *message, const char **rest);

/* Appends a text in quotes, escaped and shortened, for a message. */
void settings_quote(struct buffer *out, const char *text);

#endif
