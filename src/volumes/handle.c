/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: see handle.h. */
#include "volumes/handle.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

#include "base/memory.h"

/* Digits before letters, as bytes sort; without those that people mistake for each other. */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

#define TIME_DIGITS 10
#define RANDOM_DIGITS 13

static char *
print(char *out, uint64_t number, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        out[i] = digits[number % 32];
        number /= 32;
    }
    return out + count;
}

static uint64_t
random_number(void)
{
    uint64_t number;
    while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        if (errno != EINTR)
            memory_exhausted();
    return number;
}

uint64_t
handle_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void
handle_make(const struct engine *engine, char out[BACKEND_HANDLE_SIZE])
{
    uint64_t now = handle_now_ms();
    char *end = print(out, now > engine->started_ms ? now : engine->started_ms, TIME_DIGITS);
    *print(end, random_number(), RANDOM_DIGITS) = '\0';
}

void
handle_make_for(const struct engine *engine, const struct backend *home,
                char out[BACKEND_HANDLE_SIZE])
{
    handle_make(engine, out);
    backend_mark_handle(engine->backend, home, out);
}

void
handle_print_least(uint64_t time_ms, char out[BACKEND_HANDLE_SIZE])
{
    *print(out, time_ms, TIME_DIGITS) = '\0';
}
