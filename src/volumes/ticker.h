/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that does the same thing from time to time. */
#ifndef VOLUMES_TICKER_H
#define VOLUMES_TICKER_H

#include <stdint.h>

struct ticker;

/* Calls `work` at once, and again `pause_ms` after it has returned. */
struct ticker *ticker_start(void (*work)(void *context), void *context, uint32_t pause_ms);

/* The pause ends. Any thread. */
void ticker_wake(struct ticker *ticker);

/* Returns when `work` is not called any more. NULL is fine. */
void ticker_stop(struct ticker *ticker);

#endif
