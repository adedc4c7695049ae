/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/loop/blocks.c */
#include "rpc/loop/blocks.h"

#include <stdalign.h>
#include <stdint.h>

#include "base/attributes.h"
#include "check.h"

#define MOST_KEPT_BYTES (512u << 10)

/* Under the sanitizers every block is the heap's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ARE_KEPT false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ARE_KEPT false
#endif
#endif
#ifndef ARE_KEPT
#define ARE_KEPT true
#endif

static void
fill(uint8_t *block, size_t size, uint8_t value)
{
    memset(block, value, size);
}

static bool
is_filled(const uint8_t *block, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != value)
            return false;
    return true;
}

static void
blocks_of_any_size_are_apart_and_aligned(void)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 3007, 3008, 3009, 3072, 100000};
    struct blocks blocks = {0};
    uint8_t *got[COUNT_OF(sizes)];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            got[i] = blocks_alloc(&blocks, sizes[i]);
            CHECK((uintptr_t)got[i] % alignof(max_align_t) == 0);
            fill(got[i], sizes[i], (uint8_t)(i + 1));
        }
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            CHECK(is_filled(got[i], sizes[i], (uint8_t)(i + 1)));
            blocks_free(&blocks, got[i]);
        }
    }
    blocks_clear(&blocks);
    CHECK_NUMBER(blocks.kept_bytes, 0);
}

static void
a_block_that_was_given_back_serves_its_size_again(void)
{
    struct blocks blocks = {0};
    void *small = blocks_alloc(&blocks, 100);
    void *large = blocks_alloc(&blocks, 1000);
    blocks_free(&blocks, small);
    blocks_free(&blocks, large);
    blocks_free(&blocks, NULL);
    if (ARE_KEPT) {
        CHECK_NUMBER(blocks.kept_bytes, 128 + 1024);
        CHECK(blocks_alloc(&blocks, 65) == small);
        CHECK(blocks_alloc(&blocks, 1024) == large);
        blocks_free(&blocks, small);
        blocks_free(&blocks, large);
    }
    blocks_clear(&blocks);
    CHECK_NUMBER(blocks.kept_bytes, 0);
}

static void
zeroed_blocks_are_zero_though_they_were_used(void)
{
    struct blocks blocks = {0};
    uint8_t *block = blocks_alloc(&blocks, 200);
    fill(block, 200, 0xff);
    blocks_free(&blocks, block);
    block = blocks_zeroed(&blocks, 190);
    CHECK(is_filled(block, 190, 0));
    blocks_free(&blocks, block);
    blocks_clear(&blocks);
}

static void
a_resized_block_keeps_its_bytes(void)
{
    struct blocks blocks = {0};
    uint8_t *block = blocks_resize(&blocks, NULL, 10);
    fill(block, 10, 'a');
    for (size_t size = 20; size < 200000; size *= 3) {
        block = blocks_resize(&blocks, block, size);
        CHECK(is_filled(block, 10, 'a'));
        fill(block + 10, size - 10, 'b');
    }
    CHECK(blocks_resize(&blocks, block, 5) == block);
    blocks_free(&blocks, block);
    blocks_clear(&blocks);
}

static void
only_so_much_is_kept(void)
{
    struct blocks blocks = {0};
    void *got[400];
    for (size_t i = 0; i < COUNT_OF(got); i++)
        got[i] = blocks_alloc(&blocks, 3000);
    for (size_t i = 0; i < COUNT_OF(got); i++)
        blocks_free(&blocks, got[i]);
    CHECK(blocks.kept_bytes <= MOST_KEPT_BYTES);
    CHECK(!ARE_KEPT || blocks.kept_bytes > MOST_KEPT_BYTES - 3008);
    blocks_clear(&blocks);
    CHECK_NUMBER(blocks.kept_bytes, 0);
}

int
main(void)
{
    blocks_of_any_size_are_apart_and_aligned();
    a_block_that_was_given_back_serves_its_size_again();
    zeroed_blocks_are_zero_though_they_were_used();
    a_resized_block_keeps_its_bytes();
    only_so_much_is_kept();
    return check_report("test_blocks");
}
