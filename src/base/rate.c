/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of bytes per second: see rate.h. What has not been used is not saved for later. */
#include "base/rate.h"

#include "base/clock.h"

#define NS_PER_S UINT64_C(1000000000)

void
rate_init(struct rate *rate, uint64_t bytes_per_s)
{
    *rate = (struct rate){.bytes_per_s = bytes_per_s};
    pthread_mutex_init(&rate->lock, NULL);
}

void
rate_clear(struct rate *rate)
{
    pthread_mutex_destroy(&rate->lock);
}

uint64_t
rate_take(struct rate *rate, uint64_t bytes)
{
    if (!rate->bytes_per_s)
        return 0;
    uint64_t now = clock_now_ns();
    pthread_mutex_lock(&rate->lock);
    uint64_t start = rate->free_ns > now ? rate->free_ns : now;
    rate->free_ns = start + bytes * NS_PER_S / rate->bytes_per_s;
    pthread_mutex_unlock(&rate->lock);
    return start - now;
}
