/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the programs that move bytes, and the line in which bench/run reads their result. */
#ifndef BENCH_THROUGHPUT_H
#define BENCH_THROUGHPUT_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline double
throughput_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void
throughput_print(uint64_t bytes, double seconds)
{
    printf("%llu bytes in %.6f s, %.0f MB/s\n", (unsigned long long)bytes, seconds,
           (double)bytes / 1e6 / seconds);
}

#endif
