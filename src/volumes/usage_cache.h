/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of the usage of trees. A back end without quotas has to walk through all files of a
 * volume to measure it. A slow measurement is valid for a thousand times as long as it took, ten
 * minutes at most, so measuring takes at most a thousandth of the time however often it is
 * requested.
 */
#ifndef VOLUMES_USAGE_CACHE_H
#define VOLUMES_USAGE_CACHE_H

#include <pthread.h>

#include "backends/backend.h"

/* Initialized to zero. */
struct usage_cache {
    pthread_mutex_t lock;
    struct usage_memory *entries;
    size_t count;
};

void usage_cache_clear(struct usage_cache *cache);

/* Like backend_usage. Ignores measurements from when the volume had another size. */
MUST_CHECK struct error *usage_cache_measure(struct usage_cache *cache, struct backend *backend,
                                             const struct data *data, int64_t size_bytes,
                                             struct data_usage *out);

#endif
