/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A circuit breaker: after BREAKER_FAILURES failures in a row, calls to the server are refused at
 * once, until it has answered again (the monitor goes on probing). Any answer of the server counts,
 * also an error, except DEADLINE_EXCEEDED.
 *
 * Any thread. Times are milliseconds of any monotonic clock.
 */
#ifndef DRIVERS_BREAKER_H
#define DRIVERS_BREAKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define BREAKER_FAILURES 5

struct breaker {
    pthread_mutex_t lock;
    unsigned failures; /* in a row */
    uint64_t since_ms; /* of the first of them */
    char last[256];    /* the message of the last one */
};

void breaker_init(struct breaker *breaker);
void breaker_clear(struct breaker *breaker);

/* UNAVAILABLE: the breaker is open; the message says since when, and why. */
MUST_CHECK struct error *breaker_check(struct breaker *breaker, uint64_t now_ms);

/* Does the error mean that the server has not answered? NULL does not. */
bool breaker_is_failure(const struct error *error);

/* Records how a call has ended. True: this call opens the breaker. */
bool breaker_note(struct breaker *breaker, const struct error *error, uint64_t now_ms);

#endif
