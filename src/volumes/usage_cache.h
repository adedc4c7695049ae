/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How full trees are, where finding out takes long: a back end that has no quota to ask walks
 * through all files of the volume. What took so long that it is worth remembering is good for a
 * thousand times as long, ten minutes at most; so a thousandth of the time is spent on it, however
 * often somebody asks.
 */
#ifndef VOLUMES_USAGE_CACHE_H
#define VOLUMES_USAGE_CACHE_H

#include <pthread.h>

#include "backends/backend.h"

/* All zero at first. */
struct usage_cache {
    pthread_mutex_t lock;
    struct usage_memory *entries;
    size_t count;
};

void usage_cache_clear(struct usage_cache *cache);

/* As backend_usage. What was measured when the volume had another size is not taken. */
MUST_CHECK struct error *usage_cache_measure(struct usage_cache *cache, struct backend *backend,
                                             const struct data *data, int64_t size_bytes,
                                             struct data_usage *out);

#endif
