/* SPDX-License-Identifier: Apache-2.0 */
/* A limit of bytes per second that several threads share. */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <pthread.h>
#include <stdint.h>

struct rate {
    pthread_mutex_t lock;
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t free_ns;     /* on the monotonic clock: when everything taken so far is paid */
};

void rate_init(struct rate *rate, uint64_t bytes_per_s);
void rate_clear(struct rate *rate);

/*
 * Takes bytes, at most 2^32. Returns how many nanoseconds the caller must wait before it sends
 * them. Callers are served in the order of their calls.
 */
uint64_t rate_take(struct rate *rate, uint64_t bytes);

#endif
