/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the system, in the units that the code counts in. Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Of the monotonic clock, which says nothing about the time of day. */
uint64_t clock_now_ns(void);
uint64_t clock_now_ms(void);

/* Since the boot of the machine, counting the time that it was suspended. */
uint64_t clock_boot_ms(void);

/* The monotonic clock `ms` from now, for the timed waits of pthreads. */
struct timespec clock_after_ms(uint64_t ms);

/* Unix time. */
int64_t clock_unix_ns(void);
int64_t clock_unix_ms(void);

#endif
