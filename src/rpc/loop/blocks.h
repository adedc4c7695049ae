/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks that come and go with every call, kept in lists by size instead of going back to the heap. For one thread, the
 * loop's. A block carries its size, so it can be given back without it.
 */
#ifndef RPC_LOOP_BLOCKS_H
#define RPC_LOOP_BLOCKS_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>

#define BLOCKS_CLASSES 48 /* of 64 bytes each; larger blocks are the heap's */

struct block;

struct blocks {
    struct block *free[BLOCKS_CLASSES];
    size_t kept_bytes;
};

void *blocks_alloc(struct blocks *blocks, size_t size);
void *blocks_zeroed(struct blocks *blocks, size_t size);
void *blocks_resize(struct blocks *blocks, void *bytes, size_t size);
void blocks_free(struct blocks *blocks, void *bytes);

/* For nghttp2, which takes and frees a dozen blocks for every call. */
nghttp2_mem blocks_as_memory(struct blocks *blocks);

/* Gives what is kept back to the heap. */
void blocks_clear(struct blocks *blocks);

#endif
