/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of texts: parameters, contexts, segments. Lives in an arena. The pairs are sorted by key,
 * so lookups are fast and building a map of n pairs takes n log n steps, whatever a peer sends.
 */
#ifndef BASE_TEXT_MAP_H
#define BASE_TEXT_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct text_pair {
    const char *key;
    const char *value;
};

/* A copy of the struct shares the pairs: change only one of them. */
struct text_map {
    struct text_pair *pairs; /* sorted by key, each key once */
    size_t count;
    size_t capacity; /* allocated pairs */
};

struct text_list {
    const char **items;
    size_t count;
};

/* NULL if there is none. */
const char *text_map_find(const struct text_map *map, const char *key);

/*
 * Makes a map from pairs in any order, and takes over the array. If a key occurs twice, the last
 * one counts.
 */
struct text_map text_map_of(struct text_pair *pairs, size_t count, struct arena *arena);

/* A deep copy. */
struct text_map text_map_copy(const struct text_map *map, struct arena *arena);

/* An order of maps for qsort and bsearch; 0: they are equal. */
int text_map_compare(const struct text_map *a, const struct text_map *b);
bool text_map_equal(const struct text_map *a, const struct text_map *b);

/* Replaces the value of the key, or adds the pair. */
void text_map_set(struct text_map *map, struct arena *arena, const char *key, const char *value);

#endif
