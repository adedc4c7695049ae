/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of texts: see text_map.h. */
#include "base/text_map.h"

#include <string.h>

static struct text_pair *
find(const struct text_map *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->pairs[i].key, key) == 0)
            return &map->pairs[i];
    return NULL;
}

const char *
text_map_find(const struct text_map *map, const char *key)
{
    const struct text_pair *pair = find(map, key);
    return pair ? pair->value : NULL;
}

bool
text_map_equal(const struct text_map *a, const struct text_map *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const char *value = text_map_find(b, a->pairs[i].key);
        if (!value || strcmp(value, a->pairs[i].value) != 0)
            return false;
    }
    return true;
}

void
text_map_set(struct text_map *map, struct arena *arena, const char *key, const char *value)
{
    struct text_pair *pair = find(map, key);
    if (pair) {
        pair->value = value;
        return;
    }
    struct text_pair *grown = arena_alloc(arena, (map->count + 1) * sizeof *grown);
    if (map->count)
        memcpy(grown, map->pairs, map->count * sizeof *grown);
    grown[map->count++] = (struct text_pair){key, value};
    map->pairs = grown;
}
