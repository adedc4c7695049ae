/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of outgoing bytes: see chunk.h. */
#include "rpc/http2/chunk.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/loop/blocks.h"

/* Without sharing, a peer that sends single bytes would cost one chunk for each. */
#define SHARED_BYTES 2048u

struct chunk *
chunk_new_in(struct blocks *blocks, size_t size)
{
    size_t whole = sizeof(struct chunk) + size;
    struct chunk *chunk = blocks ? blocks_alloc(blocks, whole) : memory_new(whole);
    *chunk = (struct chunk){.blocks = blocks, .references = 1, .size = size};
    return chunk;
}

struct chunk *
chunk_new(size_t size)
{
    return chunk_new_in(NULL, size);
}

void
chunk_release(struct chunk *chunk)
{
    if (!chunk || --chunk->references)
        return;
    if (chunk->blocks)
        blocks_free(chunk->blocks, chunk);
    else
        free(chunk);
}

void
chunk_queue_push(struct chunk_queue *queue, struct chunk *chunk)
{
    if (!chunk->size) {
        chunk_release(chunk);
        return;
    }
    chunk->next = NULL;
    if (queue->last)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
    queue->size += chunk->size;
}

/* Appending to the last chunk is safe even while a connection writes that chunk's earlier bytes. */
void
chunk_queue_append(struct chunk_queue *queue, struct blocks *blocks, const uint8_t *bytes,
                   size_t size)
{
    struct chunk *last = queue->last;
    if (!last || last->room < size) {
        size_t whole = last && size < SHARED_BYTES ? SHARED_BYTES : size;
        struct chunk *chunk = chunk_new_in(blocks, whole);
        memcpy(chunk->bytes, bytes, size);
        chunk->size = size;
        chunk->room = (unsigned)(whole - size);
        chunk_queue_push(queue, chunk);
        return;
    }
    memcpy(last->bytes + last->size, bytes, size);
    last->size += size;
    last->room -= (unsigned)size;
    queue->size += size;
}

size_t
chunk_queue_peek(const struct chunk_queue *queue, size_t room, const uint8_t **bytes,
                 struct chunk **chunk)
{
    size_t left = queue->first->size - queue->sent_of_first;
    *bytes = queue->first->bytes + queue->sent_of_first;
    *chunk = queue->first;
    return left < room ? left : room;
}

void
chunk_queue_advance(struct chunk_queue *queue, size_t size)
{
    queue->size -= size;
    queue->sent_of_first += size;
    while (queue->first && queue->sent_of_first >= queue->first->size) {
        struct chunk *sent = queue->first;
        queue->sent_of_first -= sent->size;
        queue->first = sent->next;
        if (!queue->first)
            queue->last = NULL;
        chunk_release(sent);
    }
}

void
chunk_queue_clear(struct chunk_queue *queue)
{
    chunk_queue_advance(queue, queue->size);
}
