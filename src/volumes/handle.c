/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: see handle.h. */
#include "volumes/handle.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

/* Digits sort before letters, as bytes do. Letters that are easily confused are left out. */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

#define TIME_DIGITS 10
#define RANDOM_DIGITS 13
#define HOME_DIGITS (HANDLE_HOME_SIZE - 1)
#define HOME_BITS (5 * HOME_DIGITS)

#define LATEST_MS (UINT64_C(1) << 48) /* in about nine thousand years; there is room for 50 bits */

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

void
handle_start_clock(struct engine *engine, uint64_t newest_ms)
{
    uint64_t now = (uint64_t)clock_unix_ms();
    engine->uptime_at_start_ms = clock_boot_ms();
    engine->started_ms = now > newest_ms ? now : newest_ms + 1;
}

uint64_t
handle_now_ms(const struct engine *engine)
{
    return engine->started_ms + (clock_boot_ms() - engine->uptime_at_start_ms);
}

void
handle_make(const struct engine *engine, char out[BACKEND_HANDLE_SIZE])
{
    char *end = print(out, handle_now_ms(engine), TIME_DIGITS);
    end = print(end, random_number(), RANDOM_DIGITS);
    memcpy(end, engine->home, strlen(engine->home) + 1);
}

void
handle_make_for(const struct engine *engine, const struct backend *home,
                char out[BACKEND_HANDLE_SIZE])
{
    handle_make(engine, out);
    backend_mark_handle(engine->backend, home, out);
}

/* ---- homes ---- */

void
handle_print_home(const char *node_id, char out[HANDLE_HOME_SIZE])
{
    uint64_t hash = hash_text(node_id);
    /* Spreads names that differ in their last character. Must not change: handles are stored. */
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    *print(out, hash >> (64 - HOME_BITS), HOME_DIGITS) = '\0';
}

bool
handle_read_home(const char *handle, char out[HANDLE_HOME_SIZE])
{
    if (strspn(handle, digits) != TIME_DIGITS + RANDOM_DIGITS + HOME_DIGITS)
        return false;
    memcpy(out, handle + TIME_DIGITS + RANDOM_DIGITS, HOME_DIGITS);
    out[HOME_DIGITS] = '\0';
    return true;
}

bool
handle_read_key(const char *key, char out[HANDLE_HOME_SIZE])
{
    const char *at = strchr(key, '@');
    if (!at)
        return handle_read_home(key, out);
    if (strlen(at + 1) != HOME_DIGITS || strspn(at + 1, digits) != HOME_DIGITS)
        return false;
    memcpy(out, at + 1, HANDLE_HOME_SIZE);
    return true;
}

/* ---- choices ---- */

/* 13 digits have 65 bits, one more than the random number: the highest bit is the mark. */
#define CHOICE_BIT 16

void
handle_mark_choice(char handle[BACKEND_HANDLE_SIZE])
{
    char *first = &handle[TIME_DIGITS];
    *first = digits[(size_t)(strchr(digits, *first) - digits) | CHOICE_BIT];
}

bool
handle_has_choice(const char *handle)
{
    return strspn(handle, digits) >= TIME_DIGITS + RANDOM_DIGITS &&
           strchr(digits, handle[TIME_DIGITS]) >= &digits[CHOICE_BIT];
}

/* ---- times ---- */

void
handle_print_least(uint64_t time_ms, char out[BACKEND_HANDLE_SIZE])
{
    *print(out, time_ms, TIME_DIGITS) = '\0';
}

/*
 * Rejects times beyond LATEST_MS: if the clock continued from there, its times would not fit into a
 * handle.
 */
uint64_t
handle_read_time(const char *handle)
{
    uint64_t time_ms = 0;
    for (int i = 0; i < TIME_DIGITS; i++) {
        const char *digit = handle[i] ? strchr(digits, handle[i]) : NULL;
        if (!digit)
            return 0;
        time_ms = time_ms * 32 + (uint64_t)(digit - digits);
    }
    return time_ms < LATEST_MS ? time_ms : 0;
}
