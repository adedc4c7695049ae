/* SPDX-License-Identifier: Apache-2.0 */
/* Small blocks in lists by size: see pool.h. */
#include "rpc/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define CLASS_BYTES 64u
#define MOST_KEPT_BYTES (512u << 10)

struct pool_block {
    union {
        size_t size; /* in use: of the bytes that follow, a whole number of classes */
        max_align_t aligned;
    };
    union {
        struct pool_block *next; /* free */
        max_align_t bytes[1];
    };
};

#define HEAD_BYTES offsetof(struct pool_block, bytes)

static struct pool_block *
block_of(void *bytes)
{
    return (struct pool_block *)(void *)((uint8_t *)bytes - HEAD_BYTES);
}

void *
pool_alloc(struct pool *pool, size_t size)
{
    size_t class = (size + CLASS_BYTES - 1) / CLASS_BYTES;
    struct pool_block *block = class < POOL_CLASSES ? pool->free[class] : NULL;
    if (block) {
        pool->free[class] = block->next;
        pool->kept_bytes -= block->size;
    } else {
        block = memory_new(HEAD_BYTES + (class ? class : 1) * CLASS_BYTES);
        block->size = class * CLASS_BYTES;
    }
    return block->bytes;
}

void *
pool_zeroed(struct pool *pool, size_t size)
{
    return memset(pool_alloc(pool, size), 0, size);
}

void
pool_free(struct pool *pool, void *bytes)
{
    if (!bytes)
        return;
    struct pool_block *block = block_of(bytes);
    size_t class = block->size / CLASS_BYTES;
    if (class >= POOL_CLASSES || pool->kept_bytes + block->size > MOST_KEPT_BYTES) {
        free(block);
        return;
    }
    block->next = pool->free[class];
    pool->free[class] = block;
    pool->kept_bytes += block->size;
}

void *
pool_resize(struct pool *pool, void *bytes, size_t size)
{
    size_t had = bytes ? block_of(bytes)->size : 0;
    if (bytes && size <= had)
        return bytes;
    void *moved = pool_alloc(pool, size);
    if (had)
        memcpy(moved, bytes, had);
    pool_free(pool, bytes);
    return moved;
}

void
pool_clear(struct pool *pool)
{
    for (size_t class = 0; class < POOL_CLASSES; class ++) {
        while (pool->free[class]) {
            struct pool_block *next = pool->free[class]->next;
            free(pool->free[class]);
            pool->free[class] = next;
        }
    }
    pool->kept_bytes = 0;
}
