/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks that come and go with every call, kept in lists by size instead of going back to the heap. For one thread, the
 * loop's. A block carries its size, so it can be given back without it.
 */
#ifndef RPC_POOL_H
#define RPC_POOL_H

#include <stddef.h>

#define POOL_CLASSES 48 /* of 64 bytes each; larger blocks are the heap's */

struct pool_block;

struct pool {
    struct pool_block *free[POOL_CLASSES];
    size_t kept_bytes;
};

void *pool_alloc(struct pool *pool, size_t size);
void *pool_zeroed(struct pool *pool, size_t size);
void *pool_resize(struct pool *pool, void *bytes, size_t size);
void pool_free(struct pool *pool, void *bytes);

/* Gives what is kept back to the heap. */
void pool_clear(struct pool *pool);

#endif
