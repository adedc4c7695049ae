/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of texts. */
#include "base/text_map.h"

#include <stdint.h>
#include <string.h>

#include "check.h"

enum { MANY = 100000 };

static void
check_many(const struct text_map *map, const char *value)
{
    CHECK_NUMBER(map->count, MANY);
    for (size_t i = 1; i < map->count; i++)
        CHECK(strcmp(map->pairs[i - 1].key, map->pairs[i].key) < 0);
    CHECK_TEXT(text_map_find(map, "000000"), value);
    CHECK_TEXT(text_map_find(map, "099999"), value);
    CHECK(text_map_find(map, "100000") == NULL);
}

/* In an order that is neither up nor down. */
static struct text_pair *
make_pairs(struct arena *arena)
{
    struct text_pair *pairs = arena_alloc(arena, 2 * MANY * sizeof *pairs);
    for (size_t i = 0; i < MANY; i++) {
        pairs[i].key = pairs[MANY + i].key = arena_print(arena, "%06zu", i * 7919 % MANY);
        pairs[i].value = "first";
        pairs[MANY + i].value = "last";
    }
    return pairs;
}

static void
of_a_key_that_is_there_twice_the_last_counts(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_map map = text_map_of(make_pairs(&arena), 2 * (size_t)MANY, &arena);
    check_many(&map, "last");
}

static void
many_pairs_take_room_that_grows_with_their_number(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_pair *pairs = make_pairs(&arena);
    struct text_map all = text_map_of(pairs, MANY, &arena), map = {0};
    size_t before = arena.used;
    for (size_t i = 0; i < MANY; i++)
        text_map_set(&map, &arena, all.pairs[i].key, "x");
    check_many(&map, "x");
    CHECK(arena.used - before < 5 * MANY * sizeof *pairs);
}

static void
set_replaces_and_adds_in_order(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_map map = {0};
    const char *keys[] = {"m", "z", "a", "m", "b", "y"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        text_map_set(&map, &arena, keys[i], arena_print(&arena, "%zu", i));
    CHECK_NUMBER(map.count, 5);
    CHECK_TEXT(map.pairs[0].key, "a");
    CHECK_TEXT(map.pairs[4].key, "z");
    CHECK_TEXT(text_map_find(&map, "m"), "3");
    CHECK_TEXT(text_map_find(&map, "z"), "1");
    CHECK(text_map_find(&map, "") == NULL);
}

static void
maps_are_equal_whatever_the_order_of_their_pairs(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_pair one[] = {{"a", "1"}, {"b", "2"}}, two[] = {{"b", "2"}, {"a", "1"}};
    struct text_pair other[] = {{"a", "1"}, {"b", "3"}};
    struct text_map a = text_map_of(one, 2, &arena), b = text_map_of(two, 2, &arena);
    struct text_map c = text_map_of(other, 2, &arena), none = {0};
    CHECK(text_map_equal(&a, &b));
    CHECK(!text_map_equal(&a, &c));
    CHECK(text_map_compare(&a, &c) < 0 && text_map_compare(&c, &a) > 0);
    CHECK(!text_map_equal(&a, &none) && text_map_equal(&none, &none));
}

int
main(void)
{
    of_a_key_that_is_there_twice_the_last_counts();
    many_pairs_take_room_that_grows_with_their_number();
    set_replaces_and_adds_in_order();
    maps_are_equal_whatever_the_order_of_their_pairs();
    return check_report("test_text_map");
}
