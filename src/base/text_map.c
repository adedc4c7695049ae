/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of texts: see text_map.h. */
#include "base/text_map.h"

#include <string.h>

/* The number of keys that are less than this one. */
static size_t
position_of(const struct text_map *map, const char *key)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(map->pairs[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool
has_key_at(const struct text_map *map, size_t position, const char *key)
{
    return position < map->count && strcmp(map->pairs[position].key, key) == 0;
}

const char *
text_map_find(const struct text_map *map, const char *key)
{
    size_t position = position_of(map, key);
    return has_key_at(map, position, key) ? map->pairs[position].value : NULL;
}

int
text_map_compare(const struct text_map *a, const struct text_map *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = 0; i < a->count; i++) {
        int order = strcmp(a->pairs[i].key, b->pairs[i].key);
        if (order == 0)
            order = strcmp(a->pairs[i].value, b->pairs[i].value);
        if (order != 0)
            return order;
    }
    return 0;
}

bool
text_map_equal(const struct text_map *a, const struct text_map *b)
{
    return text_map_compare(a, b) == 0;
}

static void
make_room(struct text_map *map, struct arena *arena)
{
    if (map->count < map->capacity)
        return;
    map->capacity = map->count < 4 ? 4 : 2 * map->count;
    struct text_pair *grown = arena_alloc(arena, map->capacity * sizeof *grown);
    if (map->count)
        memcpy(grown, map->pairs, map->count * sizeof *grown);
    map->pairs = grown;
}

void
text_map_set(struct text_map *map, struct arena *arena, const char *key, const char *value)
{
    size_t position = position_of(map, key);
    if (has_key_at(map, position, key)) {
        map->pairs[position].value = value;
        return;
    }
    make_room(map, arena);
    struct text_pair *place = &map->pairs[position];
    memmove(place + 1, place, (map->count - position) * sizeof *place);
    *place = (struct text_pair){key, value};
    map->count++;
}

/* A stable sort, which qsort need not be. */
static void
merge_sort(struct text_pair *pairs, size_t count, struct text_pair *scratch)
{
    if (count < 2)
        return;
    size_t half = count / 2, left = 0, right = half, next = 0;
    merge_sort(pairs, half, scratch);
    merge_sort(pairs + half, count - half, scratch);
    memcpy(scratch, pairs, half * sizeof *pairs);
    while (left < half) {
        bool right_is_less = right < count && strcmp(pairs[right].key, scratch[left].key) < 0;
        pairs[next++] = right_is_less ? pairs[right++] : scratch[left++];
    }
}

struct text_map
text_map_of(struct text_pair *pairs, size_t count, struct arena *arena)
{
    struct text_map map = {.pairs = pairs, .capacity = count};
    merge_sort(pairs, count, arena_alloc(arena, count / 2 * sizeof *pairs));
    for (size_t i = 0; i < count; i++) {
        bool is_again = map.count && strcmp(pairs[map.count - 1].key, pairs[i].key) == 0;
        pairs[is_again ? map.count - 1 : map.count++] = pairs[i];
    }
    return map;
}

struct text_map
text_map_copy(const struct text_map *map, struct arena *arena)
{
    struct text_map copy = {arena_alloc(arena, map->count * sizeof *copy.pairs), map->count,
                            map->count};
    for (size_t i = 0; i < map->count; i++)
        copy.pairs[i] = (struct text_pair){arena_string(arena, map->pairs[i].key),
                                           arena_string(arena, map->pairs[i].value)};
    return copy;
}
