/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks that are read ahead, several at a time, and kept while they are in use. The memory is
 * bounded: at most CHUNK_CACHE_SLOTS chunks. Safe from any thread.
 */
#ifndef EXPORTS_CHUNK_CACHE_H
#define EXPORTS_CHUNK_CACHE_H

#include "repository/repository.h"

#define CHUNK_CACHE_SLOTS 22u

struct chunk_cache;

MUST_CHECK struct error *chunk_cache_open(struct repository *repository, struct chunk_cache **out);
/* Nobody uses a chunk any more. NULL is fine. */
void chunk_cache_close(struct chunk_cache *cache);

/*
 * These will be needed, in this order. Replaces what was told before. The caller keeps the ids
 * until the next call.
 */
void chunk_cache_expect(struct chunk_cache *cache, const struct repository_id *ids, size_t count);

/* The chunk stays until chunk_cache_release. Errors as repository_read. */
MUST_CHECK struct error *chunk_cache_get(struct chunk_cache *cache, const struct repository_id *id,
                                         const uint8_t **bytes, size_t *size);
void chunk_cache_release(struct chunk_cache *cache, const uint8_t *bytes);

#endif
