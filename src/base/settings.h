/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings as a file gives them: a tree of texts, lists and maps, each with the line that it stands on. It lives in an arena and never changes
 * once it has been read (connections/yaml.h reads it).
 *
 * The readers leave *out as it is where the key is absent. What cannot be read is INVALID_ARGUMENT, with the line, the key and what
 * would be right: "line 4: max-calls: \"many\" is no number from 1 to 1024".
 */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text_map.h"

enum setting_kind { SETTING_TEXT, SETTING_LIST, SETTING_MAP };

struct setting {
    enum setting_kind kind;
    unsigned line;               /* from 1 */
    const char *key;             /* where it stands in a map; keys are unique there */
    const char *text;            /* of a text */
    const struct setting *first; /* of a list and a map, in the file's order */
    const struct setting *next;  /* beside this one */
};

/* `map` may be NULL, which has nothing. */
const struct setting *settings_find(const struct setting *map, const char *key);

/* Two trees say the same, wherever they stand in their files. Either may be NULL. */
bool settings_equal(const struct setting *a, const struct setting *b);

/* Nothing but these keys, NULL at the end: the error names the first that is not known, and those that are. */
MUST_CHECK struct error *settings_check_keys(const struct setting *map, const char *const *known);

MUST_CHECK struct error *settings_read_text(const struct setting *map, const char *key,
                                            const char **out);
MUST_CHECK struct error *settings_read_flag(const struct setting *map, const char *key, bool *out);
MUST_CHECK struct error *settings_read_number(const struct setting *map, const char *key,
                                              int64_t min, int64_t max, int64_t *out);
/* "100Gi", as base/size_text.h reads it. */
MUST_CHECK struct error *settings_read_size(const struct setting *map, const char *key,
                                            int64_t *out);
/* "500ms", "30s", "2m"; from 1 ms to a day. */
MUST_CHECK struct error *settings_read_time(const struct setting *map, const char *key,
                                            uint32_t *milliseconds);
/* A map of texts. */
MUST_CHECK struct error *settings_read_map(const struct setting *map, const char *key,
                                           struct arena *arena, struct text_map *out);
/* A list of texts; a single text is a list of one. */
MUST_CHECK struct error *settings_read_list(const struct setting *map, const char *key,
                                            struct arena *arena, struct text_list *out);

#endif
