/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps calls away from a server that does not answer: after so many failures in a row to reach it
 * calls are refused at once, until it has answered somebody again (the monitor goes on asking). An
 * answer is whatever the server itself said, an error too, but that the time is over.
 *
 * Any thread. Times are milliseconds of any clock that does not go back.
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
    char last[256];    /* what the last of them said */
};

void breaker_init(struct breaker *breaker);
void breaker_clear(struct breaker *breaker);

/*
 * NULL: calls may pass. Otherwise UNAVAILABLE: for how long the server has not answered, and what
 * was seen last.
 */
MUST_CHECK struct error *breaker_check(struct breaker *breaker, uint64_t now_ms);

/* The server has not answered: it was not to be reached, or not in time. NULL is none. */
bool breaker_is_failure(const struct error *error);

/* How a call has ended; NULL: well. True: with this one it begins to refuse calls. */
bool breaker_note(struct breaker *breaker, const struct error *error, uint64_t now_ms);

#endif
