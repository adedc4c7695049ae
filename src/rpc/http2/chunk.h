/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of outgoing bytes. Any thread may fill a chunk, once; after that it is read-only. The
 * stream that sends it and the connection that writes it each hold a reference. The reference count
 * belongs to the loop thread.
 */
#ifndef RPC_HTTP2_CHUNK_H
#define RPC_HTTP2_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blocks;

struct chunk {
    struct chunk *next;
    struct blocks *blocks; /* the allocator it came from; NULL: the heap */
    unsigned references;
    unsigned room; /* unused bytes after `size` */
    size_t size;
    uint8_t bytes[];
};

/* Returns a chunk with one reference and `size` bytes for the caller to fill. */
struct chunk *chunk_new(size_t size);
/* The same, for chunks that stay on the thread that owns `blocks`. */
struct chunk *chunk_new_in(struct blocks *blocks, size_t size);
void chunk_release(struct chunk *chunk);

/* A FIFO of chunks; the first one may be partly sent. */
struct chunk_queue {
    struct chunk *first;
    struct chunk *last;
    size_t sent_of_first;
    size_t size; /* bytes not yet sent */
};

/* Takes over the caller's reference. */
void chunk_queue_push(struct chunk_queue *queue, struct chunk *chunk);

/*
 * Copies the bytes to the end of the queue. Small writes share a chunk if the queue is not empty.
 * All chunks of the queue must come from `blocks`.
 */
void chunk_queue_append(struct chunk_queue *queue, struct blocks *blocks, const uint8_t *bytes,
                        size_t size);

/*
 * Returns the next contiguous bytes, at most `room` of them, and the chunk that holds them. The
 * queue must not be empty.
 */
size_t chunk_queue_peek(const struct chunk_queue *queue, size_t room, const uint8_t **bytes,
                        struct chunk **chunk);
void chunk_queue_advance(struct chunk_queue *queue, size_t size);
void chunk_queue_clear(struct chunk_queue *queue);

#endif
