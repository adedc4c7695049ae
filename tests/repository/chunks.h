/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots for tests: chunks whose contents are a function of their number, and a record that is
 * the row of their ids.
 */
#ifndef TESTS_REPOSITORY_CHUNKS_H
#define TESTS_REPOSITORY_CHUNKS_H

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "repository/repository.h"

/* Contents of a chunk: a function of its number; odd ones cannot be compressed. */
static inline void
fill_chunk(uint64_t number, uint8_t *bytes, size_t size)
{
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (size_t i = 0; i < size; i++) {
        if (i < 8 || number % 2) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        bytes[i] = (uint8_t)(state >> 32);
    }
}

static inline size_t
chunk_size(uint64_t number)
{
    return 1 + (size_t)(number * 7919 % 40000);
}

/* Puts chunk `number`, and appends its id to the record. */
static inline struct error *
put_chunk(struct repository_writer *writer, uint64_t number, struct buffer *record)
{
    uint8_t bytes[40001];
    struct repository_id id;
    fill_chunk(number, bytes, chunk_size(number));
    struct error *error = repository_writer_put(writer, bytes, chunk_size(number), &id);
    if (!error)
        buffer_append(record, id.bytes, sizeof id.bytes);
    return error;
}

/* A snapshot of chunks first, first + step and so on; the record is a row of their ids. */
static inline struct error *
put_snapshot(struct repository *repository, uint64_t first, uint64_t step, unsigned count,
             char name[REPOSITORY_NAME_BYTES])
{
    struct repository_writer *writer AUTO(repository_writer_cleanup) = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    struct error *error = repository_writer_open(repository, &writer);
    for (unsigned i = 0; i < count && !error; i++)
        error = put_chunk(writer, first + i * step, &record);
    if (!error)
        error = repository_writer_commit(writer, record.bytes, record.size, name);
    return error;
}

/* NULL if all chunks of the snapshot are as they were put. */
static inline struct error *
check_snapshot(struct repository *repository, const char *name, uint64_t first, uint64_t step,
               unsigned count)
{
    struct buffer record AUTO(buffer_clear) = {0};
    uint8_t *bytes AUTO(memory_cleanup) = memory_zeroed(REPOSITORY_CHUNK_MAX);
    uint8_t expected[40001];
    struct error *error = repository_snapshot_get(repository, name, &record);
    if (!error && record.size != (size_t)count * REPOSITORY_ID_BYTES)
        error = error_new(CODE_DATA_LOSS, "the record has %zu bytes", record.size);
    for (unsigned i = 0; i < count && !error; i++) {
        struct repository_id id;
        size_t size = 0;
        memcpy(id.bytes, record.bytes + (size_t)i * sizeof id.bytes, sizeof id.bytes);
        error = repository_read(repository, &id, bytes, &size);
        fill_chunk(first + i * step, expected, chunk_size(first + i * step));
        if (!error && (size != chunk_size(first + i * step) || memcmp(bytes, expected, size) != 0))
            error = error_new(CODE_DATA_LOSS, "chunk %u is another one", i);
    }
    return error;
}

static inline struct error *
list_references(struct repository *repository, const void *record, size_t size,
                const struct repository_visitor *visitor, void *context)
{
    struct error *error = NULL;
    (void)repository;
    (void)context;
    for (size_t at = 0; at < size && !error; at += REPOSITORY_ID_BYTES) {
        struct repository_id id;
        memcpy(id.bytes, (const uint8_t *)record + at, sizeof id.bytes);
        error = visitor->take(&id, visitor->context);
    }
    return error;
}

static const struct repository_references references = {list_references, NULL};

#endif
