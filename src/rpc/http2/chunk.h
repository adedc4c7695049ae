/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of bytes on their way out. A chunk is filled once (by any thread), then only read; the stream that sends it and the
 * connection that writes it each hold a reference while they need it. References are counted on the loop thread.
 */
#ifndef RPC_HTTP2_CHUNK_H
#define RPC_HTTP2_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blocks;

struct chunk {
    struct chunk *next;
    struct blocks *home; /* where the memory goes back to; NULL: to the heap */
    unsigned references;
    unsigned room; /* for more bytes behind these */
    size_t size;
    uint8_t bytes[];
};

/* Made with one reference and `size` bytes to fill. */
struct chunk *chunk_new(size_t size);
/* The same, for chunks that never leave the thread of these blocks. */
struct chunk *chunk_new_in(struct blocks *blocks, size_t size);
void chunk_release(struct chunk *chunk);

/* Chunks in order; the first one may be partly sent. */
struct chunk_queue {
    struct chunk *first;
    struct chunk *last;
    size_t sent_of_first;
    size_t size; /* bytes not yet sent */
};

/* Takes the chunk's reference. */
void chunk_queue_push(struct chunk_queue *queue, struct chunk *chunk);

/* Copies the bytes; where others wait already, small runs share a chunk. Only for queues whose chunks are all of these blocks. */
void chunk_queue_append(struct chunk_queue *queue, struct blocks *blocks, const uint8_t *bytes,
                        size_t size);

/* The next run of bytes, at most `room`; and the chunk that they stand in. The queue must not be empty. */
size_t chunk_queue_peek(const struct chunk_queue *queue, size_t room, const uint8_t **bytes,
                        struct chunk **chunk);
void chunk_queue_advance(struct chunk_queue *queue, size_t size);
void chunk_queue_clear(struct chunk_queue *queue);

#endif
