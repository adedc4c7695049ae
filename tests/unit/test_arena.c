/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/arena.c */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "check.h"

static bool
is_aligned(const void *block)
{
    return (uintptr_t)block % alignof(max_align_t) == 0;
}

static void
blocks_of_any_size_are_apart_and_aligned(void)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 1024, 1025, 4096, 5000, 70000};
    struct arena arena AUTO(arena_clear);
    uint8_t *blocks[COUNT_OF(sizes)];
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        blocks[i] = arena_alloc(&arena, sizes[i]);
        CHECK(is_aligned(blocks[i]));
        memset(blocks[i], (int)i, sizes[i]);
    }
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t j = 0; j < sizes[i]; j++)
            if (blocks[i][j] != i) {
                CHECK_NUMBER(blocks[i][j], i);
                break;
            }
    CHECK(blocks[0] != blocks[1]);
}

static void
the_first_block_is_used_before_the_heap(void)
{
    alignas(max_align_t) uint8_t first[256];
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, first, sizeof first, SIZE_MAX);
    uint8_t *block = arena_alloc(&arena, 200);
    CHECK(block == first);
    uint8_t *next = arena_alloc(&arena, 200);
    CHECK(next < first || next >= first + sizeof first);
    /* What is left of the first block is lost to it once there is a newer one. */
    arena_clear(&arena);
    CHECK(arena_alloc(&arena, 1) == first);
}

/* One byte behind an aligned place: what is left of it after aligning may be nothing. */
static void
a_first_block_that_is_too_small_to_align_is_not_used(void)
{
    alignas(max_align_t) uint8_t room[64];
    for (size_t size = 0; size < 32; size++) {
        struct arena arena;
        arena_init(&arena, room + 1, size, 0);
        for (int i = 0; i < 4; i++) {
            uint8_t *block = arena_alloc(&arena, 8);
            CHECK(is_aligned(block));
            CHECK(block + 8 <= room + 1 + size || block >= room + sizeof room || block < room);
        }
        arena_clear(&arena);
    }
}

static void
a_large_block_leaves_the_room_of_the_newest_in_use(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    uint8_t *before = arena_alloc(&arena, 16);
    memset(arena_alloc(&arena, 100000), 'x', 100000);
    uint8_t *after = arena_alloc(&arena, 16);
    CHECK(after == before + 16);
}

static void
all_that_is_given_out_counts_and_only_tries_are_refused(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, 1000);
    CHECK(arena_try(&arena, 1001) == NULL);
    CHECK(arena_try(&arena, SIZE_MAX) == NULL);
    CHECK(arena_try(&arena, 300) != NULL);
    CHECK(arena_alloc(&arena, 300) != NULL);
    CHECK(arena_try(&arena, 600) == NULL);
    CHECK(arena_try(&arena, 300) != NULL);
    size_t more = 0;
    while (more < 1000 && arena_try(&arena, 1))
        more++;
    CHECK(more <= 100);
    CHECK(arena_alloc(&arena, 6000) != NULL);
    CHECK(arena_try(&arena, 1) == NULL);
}

static void
after_a_clear_the_limit_counts_anew(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, 64);
    for (int i = 0; i < 3; i++) {
        CHECK(arena_try(&arena, 64) != NULL);
        CHECK(arena_try(&arena, 64) == NULL);
        arena_clear(&arena);
    }
}

static void
texts_are_copied_and_end_with_nul(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, 0);
    char text[] = "volume";
    char *copy = arena_string(&arena, text);
    text[0] = 'V';
    CHECK_TEXT(copy, "volume");
    CHECK_TEXT(arena_copy(&arena, "abc\0def", 2), "ab");
    CHECK(memcmp(arena_copy(&arena, "abc\0def", 7), "abc\0def", 8) == 0);
    CHECK_TEXT(arena_copy(&arena, NULL, 0), "");
    CHECK_TEXT(arena_print(&arena, "%s-%d", "node", 7), "node-7");
    char *zeroed = arena_zeroed(&arena, 100);
    for (size_t i = 0; i < 100; i++)
        CHECK_NUMBER(zeroed[i], 0);
}

/* With the sanitizers memory is not what it is otherwise. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_MEASURE false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAN_MEASURE false
#endif
#endif
#ifndef CAN_MEASURE
#define CAN_MEASURE true
#endif

/* In pages. */
static long
resident(void)
{
    long size, pages = -1;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%ld %ld", &size, &pages) != 2)
        pages = -1;
    if (file)
        fclose(file);
    return pages;
}

/* Also if something that stays was taken from the heap meanwhile. */
static void
the_memory_of_many_small_things_goes_back(void)
{
    enum { BYTES = 8 << 20, PIECE = 96, PAGE = 4096 };
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    long before = resident();
    uint8_t *last = NULL;
    for (size_t i = 0; i < BYTES / PIECE; i++) {
        uint8_t *piece = arena_alloc(&arena, PIECE);
        CHECK(is_aligned(piece));
        memset(piece, (int)i, PIECE);
        if (last)
            CHECK_NUMBER(last[PIECE - 1], (i - 1) & 255);
        last = piece;
    }
    CHECK(!CAN_MEASURE || resident() - before > BYTES / PAGE / 2);
    char *stays = memory_string("on top of the heap");
    arena_clear(&arena);
    CHECK(!CAN_MEASURE || resident() - before < BYTES / PAGE / 8);
    CHECK_TEXT(stays, "on top of the heap");
    free(stays);
}

int
main(void)
{
    blocks_of_any_size_are_apart_and_aligned();
    the_first_block_is_used_before_the_heap();
    a_first_block_that_is_too_small_to_align_is_not_used();
    a_large_block_leaves_the_room_of_the_newest_in_use();
    all_that_is_given_out_counts_and_only_tries_are_refused();
    after_a_clear_the_limit_counts_anew();
    texts_are_copied_and_end_with_nul();
    the_memory_of_many_small_things_goes_back();
    return check_report("test_arena");
}
