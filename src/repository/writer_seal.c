/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that take chunks from the queue, compress them, and seal them into the open pack. Only
 * the place in the pack is chosen with the lock, so that all threads can work on one pack.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "repository/writer_internal.h"
#include "stream/stream_zstd.h"

/* A chunk is compressed if a sixteenth or more is saved: reading it costs time, too. */
#define LEAST_SAVING 16u

/* With the lock. NULL: it is time to end. */
static struct writer_chunk *
take_chunk(struct repository_writer *writer)
{
    while (!writer->first && !writer->is_ending)
        pthread_cond_wait(&writer->queued, &writer->lock);
    struct writer_chunk *chunk = writer->first;
    if (!chunk)
        return NULL;
    writer->first = chunk->next;
    if (!writer->first)
        writer->last = &writer->first;
    return chunk;
}

/* With the lock. NULL: the writer has failed. */
static struct writer_pack *
open_pack(struct repository_writer *writer)
{
    while (!writer->error && !writer->open && !writer->free && writer->packs == writer->packs_max)
        pthread_cond_wait(&writer->changed, &writer->lock);
    if (writer->error || writer->open)
        return writer->error ? NULL : writer->open;
    struct writer_pack *pack = writer->free;
    if (pack) {
        writer->free = pack->next;
    } else {
        pack = memory_zeroed(sizeof *pack);
        pack->pack = pack_new();
        writer->packs++;
    }
    *pack = (struct writer_pack){.pack = pack->pack};
    writer->open = pack;
    writer_fail(writer, pack_begin(pack->pack, writer->repository->sealing));
    return writer->error ? NULL : pack;
}

void
writer_hand_over(struct repository_writer *writer, struct writer_pack *pack)
{
    if (!pack->is_closed || pack->sealing)
        return;
    pack->next = NULL;
    *writer->full_last = pack;
    writer->full_last = &pack->next;
    pthread_cond_signal(&writer->filled);
}

/* With the lock, which it gives up while it seals. */
static void
seal(struct repository_writer *writer, const struct repository_id *id, const uint8_t *bytes,
     uint32_t size, uint32_t raw)
{
    struct writer_pack *to = open_pack(writer);
    if (!to)
        return;
    uint32_t offset = pack_reserve(to->pack, id, size, raw);
    to->sealing++;
    if (pack_is_full(to->pack)) {
        to->is_closed = true;
        writer->open = NULL;
        writer->uploading++;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->lock);
    struct error *error = sealing_seal(writer->repository->sealing, &to->pack->key, offset, bytes,
                                       size, to->pack->bytes + offset);
    pthread_mutex_lock(&writer->lock);
    writer_fail(writer, error);
    to->sealing--;
    writer_hand_over(writer, to);
}

/* With the lock, which it gives up while it compresses. */
static void
store(struct repository_writer *writer, const struct writer_chunk *chunk, struct stream_zstd *zstd,
      struct buffer *work)
{
    pthread_mutex_unlock(&writer->lock);
    size_t room = chunk->size - chunk->size / LEAST_SAVING - 1;
    work->size = 0;
    uint8_t *packed = buffer_reserve(work, room + 1);
    size_t size = room ? stream_zstd_pack(zstd, chunk->bytes.bytes, chunk->size, packed, room) : 0;
    pthread_mutex_lock(&writer->lock);
    if (size)
        seal(writer, &chunk->id, packed, (uint32_t)size, chunk->size);
    else
        seal(writer, &chunk->id, chunk->bytes.bytes, chunk->size, chunk->size);
}

static void
give_back(struct repository_writer *writer, struct writer_chunk *chunk)
{
    writer->queue_bytes -= chunk->size;
    writer->queue_chunks--;
    chunk->next = writer->spare;
    writer->spare = chunk;
    /* Whoever waits for space is woken for many chunks at once. */
    if (writer->queue_bytes <= WRITER_QUEUE_BYTES / 2 &&
        writer->queue_chunks <= WRITER_QUEUE_CHUNKS / 2)
        pthread_cond_broadcast(&writer->changed);
}

void *
writer_run_sealing(void *argument)
{
    struct repository_writer *writer = argument;
    struct stream_zstd *zstd = stream_zstd_new();
    struct buffer work AUTO(buffer_clear) = {0};
    pthread_mutex_lock(&writer->lock);
    for (struct writer_chunk *chunk; (chunk = take_chunk(writer));) {
        if (!writer->error)
            store(writer, chunk, zstd, &work);
        give_back(writer, chunk);
    }
    pthread_mutex_unlock(&writer->lock);
    stream_zstd_free(zstd);
    return NULL;
}
