/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free lists of small memory blocks by size, for what comes and goes with every call. For one
 * thread, the loop's. A block knows its size. Without them a call takes 9 to 11 % more CPU, a
 * proxied call 10 to 25 % (unary calls, 10 connections with 10 streams).
 */
#ifndef RPC_LOOP_BLOCKS_H
#define RPC_LOOP_BLOCKS_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>

#define BLOCKS_CLASSES 48 /* steps of 64 bytes; larger blocks come from the heap */

struct block;

struct blocks {
    struct block *free[BLOCKS_CLASSES];
    size_t kept_bytes;
};

void *blocks_alloc(struct blocks *blocks, size_t size);
void *blocks_zeroed(struct blocks *blocks, size_t size);
void *blocks_resize(struct blocks *blocks, void *bytes, size_t size);
void blocks_free(struct blocks *blocks, void *bytes);

/* For nghttp2, which allocates and frees a dozen blocks per call. */
nghttp2_mem blocks_as_memory(struct blocks *blocks);

/* Returns all free blocks to the heap. */
void blocks_clear(struct blocks *blocks);

#endif
