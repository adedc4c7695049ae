/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker: see breaker.h. */
#include "drivers/breaker.h"

#include <inttypes.h>
#include <stdio.h>

void
breaker_init(struct breaker *breaker)
{
    *breaker = (struct breaker){0};
    pthread_mutex_init(&breaker->lock, NULL);
}

void
breaker_clear(struct breaker *breaker)
{
    pthread_mutex_destroy(&breaker->lock);
}

struct error *
breaker_check(struct breaker *breaker, uint64_t now_ms)
{
    struct error *error = NULL;
    pthread_mutex_lock(&breaker->lock);
    if (breaker->failures >= BREAKER_FAILURES)
        error = error_new(CODE_UNAVAILABLE,
                          "it has not answered for %" PRIu64 " s and is being probed: %s",
                          (now_ms - breaker->since_ms) / 1000, breaker->last);
    pthread_mutex_unlock(&breaker->lock);
    return error;
}

/* A call that its caller has cancelled says nothing about the server. */
static bool
says_nothing(const struct error *error)
{
    return error && error->code == CODE_CANCELLED && !error->from_peer;
}

/* DEADLINE_EXCEEDED may come from the server's gRPC runtime while the driver itself hangs. */
bool
breaker_is_failure(const struct error *error)
{
    return error && (error->code == CODE_DEADLINE_EXCEEDED ||
                     (error->code == CODE_UNAVAILABLE && !error->from_peer));
}

bool
breaker_note(struct breaker *breaker, const struct error *error, uint64_t now_ms)
{
    if (says_nothing(error))
        return false;
    bool has_opened = false;
    pthread_mutex_lock(&breaker->lock);
    if (breaker_is_failure(error)) {
        if (!breaker->failures)
            breaker->since_ms = now_ms;
        snprintf(breaker->last, sizeof breaker->last, "%s", error->message);
        has_opened = ++breaker->failures == BREAKER_FAILURES;
    } else {
        breaker->failures = 0;
    }
    pthread_mutex_unlock(&breaker->lock);
    return has_opened;
}
