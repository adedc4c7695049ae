/* SPDX-License-Identifier: Apache-2.0 */
/* The system clocks. Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* The monotonic clock, which is unrelated to the time of day. */
uint64_t clock_now_ns(void);
uint64_t clock_now_ms(void);

/* The time since the machine booted, including time when it was suspended. */
uint64_t clock_boot_ms(void);

/* The time on the monotonic clock `ms` from now, for the timed waits of pthreads. */
struct timespec clock_after_ms(uint64_t ms);

/* A condition for such waits. */
void clock_init_condition(pthread_cond_t *condition);

/* Unix time. */
int64_t clock_unix_ns(void);
int64_t clock_unix_ms(void);

#endif
