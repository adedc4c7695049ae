/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the system: see clock.h. */
#include "base/clock.h"

#define NS_PER_SECOND 1000000000
#define NS_PER_MS 1000000

static int64_t
read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

uint64_t
clock_now_ns(void)
{
    return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

uint64_t
clock_now_ms(void)
{
    return clock_now_ns() / NS_PER_MS;
}

uint64_t
clock_boot_ms(void)
{
    return (uint64_t)read_clock(CLOCK_BOOTTIME) / NS_PER_MS;
}

struct timespec
clock_after_ms(uint64_t ms)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += (long)(ms % 1000) * NS_PER_MS;
    time.tv_sec += (time_t)(ms / 1000) + time.tv_nsec / NS_PER_SECOND;
    time.tv_nsec %= NS_PER_SECOND;
    return time;
}

int64_t
clock_unix_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t
clock_unix_ms(void)
{
    return clock_unix_ns() / NS_PER_MS;
}

void
clock_init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
