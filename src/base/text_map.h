/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of texts: parameters, contexts, segments. Lives in an arena. */
#ifndef BASE_TEXT_MAP_H
#define BASE_TEXT_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct text_pair {
    const char *key;
    const char *value;
};

struct text_map {
    struct text_pair *pairs;
    size_t count;
};

struct text_list {
    const char **items;
    size_t count;
};

/* NULL if there is none. */
const char *text_map_find(const struct text_map *map, const char *key);

/* The same pairs, in whatever order. Keys are unique. */
bool text_map_equal(const struct text_map *a, const struct text_map *b);

/* Replaces the value of the key, or adds the pair. */
void text_map_set(struct text_map *map, struct arena *arena, const char *key, const char *value);

#endif
