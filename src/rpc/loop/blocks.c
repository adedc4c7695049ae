/* SPDX-License-Identifier: Apache-2.0 */
/* Free lists of small memory blocks: see blocks.h. */
#include "rpc/loop/blocks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define CLASS_BYTES 64u
/* None are kept under sanitizers, which then find uses after free. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_KEPT_BYTES 0u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MOST_KEPT_BYTES 0u
#endif
#endif
#ifndef MOST_KEPT_BYTES
#define MOST_KEPT_BYTES (512u << 10)
#endif

struct block {
    union {
        size_t size; /* in use: of the bytes that follow, a whole number of classes */
        max_align_t aligned;
    };
    union {
        struct block *next; /* free */
        max_align_t bytes[1];
    };
};

#define HEAD_BYTES offsetof(struct block, bytes)

static struct block *
block_of(void *bytes)
{
    return (struct block *)(void *)((uint8_t *)bytes - HEAD_BYTES);
}

static inline void *
take(struct blocks *blocks, size_t size)
{
    size_t class = (size + CLASS_BYTES - 1) / CLASS_BYTES;
    struct block *block = class < BLOCKS_CLASSES ? blocks->free[class] : NULL;
    if (block) {
        blocks->free[class] = block->next;
        blocks->kept_bytes -= block->size;
    } else {
        block = memory_new(HEAD_BYTES + (class ? class : 1) * CLASS_BYTES);
        block->size = class * CLASS_BYTES;
    }
    return block->bytes;
}

static inline void
put_back(struct blocks *blocks, void *bytes)
{
    if (!bytes)
        return;
    struct block *block = block_of(bytes);
    size_t class = block->size / CLASS_BYTES;
    if (class >= BLOCKS_CLASSES || blocks->kept_bytes + block->size > MOST_KEPT_BYTES) {
        free(block);
        return;
    }
    block->next = blocks->free[class];
    blocks->free[class] = block;
    blocks->kept_bytes += block->size;
}

void *
blocks_alloc(struct blocks *blocks, size_t size)
{
    return take(blocks, size);
}

void
blocks_free(struct blocks *blocks, void *bytes)
{
    put_back(blocks, bytes);
}

void *
blocks_zeroed(struct blocks *blocks, size_t size)
{
    return memset(blocks_alloc(blocks, size), 0, size);
}

void *
blocks_resize(struct blocks *blocks, void *bytes, size_t size)
{
    size_t had = bytes ? block_of(bytes)->size : 0;
    if (bytes && size <= had)
        return bytes;
    void *moved = blocks_alloc(blocks, size);
    if (had)
        memcpy(moved, bytes, had);
    blocks_free(blocks, bytes);
    return moved;
}

void
blocks_clear(struct blocks *blocks)
{
    for (size_t class = 0; class < BLOCKS_CLASSES; class ++) {
        while (blocks->free[class]) {
            struct block *next = blocks->free[class]->next;
            free(blocks->free[class]);
            blocks->free[class] = next;
        }
    }
    blocks->kept_bytes = 0;
}

/* ---- as nghttp2 calls them ---- */

static void *
allocate(size_t size, void *blocks)
{
    return take(blocks, size);
}

static void *
allocate_zeroed(size_t count, size_t size, void *blocks)
{
    return blocks_zeroed(blocks, count * size);
}

static void *
resize(void *bytes, size_t size, void *blocks)
{
    return blocks_resize(blocks, bytes, size);
}

static void
give_back(void *bytes, void *blocks)
{
    put_back(blocks, bytes);
}

nghttp2_mem
blocks_as_memory(struct blocks *blocks)
{
    return (nghttp2_mem){blocks, allocate, give_back, allocate_zeroed, resize};
}
