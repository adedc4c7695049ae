/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps, and text of times and durations: see message_time.h. */
#include "message/message_time.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NANOS_PER_SECOND 1000000000
#define TIMESTAMP_FIRST INT64_C(-62135596800) /* 0001-01-01T00:00:00Z */
#define TIMESTAMP_LAST INT64_C(253402300799)  /* 9999-12-31T23:59:59Z */
#define DURATION_LAST INT64_C(315576000000)
#define DURATION_MAX_DIGITS 12

/* These parsers consume their part of the text, or return false. */

static bool
take_character(const char **text, char character)
{
    if (**text != character)
        return false;
    (*text)++;
    return true;
}

/* Exactly `digits` digits, with a value from `least` to `most`. */
static bool
take_number(const char **text, int digits, int least, int most, int *number)
{
    *number = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        *number = *number * 10 + (**text - '0');
    }
    return *number >= least && *number <= most;
}

/* A fraction such as ".5"; optional. */
static bool
take_fraction(const char **text, int32_t *nanos)
{
    *nanos = 0;
    if (!take_character(text, '.'))
        return true;
    size_t digits = strspn(*text, "0123456789");
    if (digits < 1 || digits > 9)
        return false;
    for (size_t i = 0; i < 9; i++)
        *nanos = *nanos * 10 + (i < digits ? (*text)[i] - '0' : 0);
    *text += digits;
    return true;
}

/* "Z", "+01:00" or "-01:00", in seconds east of UTC. */
static bool
take_offset(const char **text, int *offset)
{
    int hours, minutes;
    *offset = 0;
    if (take_character(text, 'Z'))
        return true;
    bool is_west = **text == '-';
    if (!take_character(text, '-') && !take_character(text, '+'))
        return false;
    if (!take_number(text, 2, 0, 23, &hours) || !take_character(text, ':') ||
        !take_number(text, 2, 0, 59, &minutes))
        return false;
    *offset = (hours * 60 + minutes) * (is_west ? -60 : 60);
    return true;
}

static bool
take_date_and_time(const char **text, struct tm *parts)
{
    return take_number(text, 4, 1, 9999, &parts->tm_year) && take_character(text, '-') &&
           take_number(text, 2, 1, 12, &parts->tm_mon) && take_character(text, '-') &&
           take_number(text, 2, 1, 31, &parts->tm_mday) && take_character(text, 'T') &&
           take_number(text, 2, 0, 23, &parts->tm_hour) && take_character(text, ':') &&
           take_number(text, 2, 0, 59, &parts->tm_min) && take_character(text, ':') &&
           take_number(text, 2, 0, 59, &parts->tm_sec);
}

bool
message_time_parse_timestamp(const char *text, int64_t *seconds, int32_t *nanos)
{
    struct tm parts = {0};
    int offset;
    if (!take_date_and_time(&text, &parts) || !take_fraction(&text, nanos) ||
        !take_offset(&text, &offset) || *text)
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    int day = parts.tm_mday;
    *seconds = (int64_t)timegm(&parts) - offset;
    /* timegm turns February 30 into March 2. */
    return parts.tm_mday == day && *seconds >= TIMESTAMP_FIRST && *seconds <= TIMESTAMP_LAST;
}

bool
message_time_parse_duration(const char *text, int64_t *seconds, int32_t *nanos)
{
    bool is_negative = take_character(&text, '-');
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > DURATION_MAX_DIGITS)
        return false;
    *seconds = 0;
    for (; digits; digits--, text++)
        *seconds = *seconds * 10 + (*text - '0');
    if (!take_fraction(&text, nanos) || strcmp(text, "s") != 0)
        return false;
    bool is_in_range = *seconds < DURATION_LAST || (*seconds == DURATION_LAST && !*nanos);
    *seconds = is_negative ? -*seconds : *seconds;
    *nanos = is_negative ? -*nanos : *nanos;
    return is_in_range;
}

/* Appends a point and 3, 6 or 9 digits, or nothing. */
static void
append_fraction(struct buffer *out, int32_t nanos)
{
    if (nanos % 1000)
        buffer_print(out, ".%09" PRId32, nanos);
    else if (nanos % 1000000)
        buffer_print(out, ".%06" PRId32, nanos / 1000);
    else if (nanos)
        buffer_print(out, ".%03" PRId32, nanos / 1000000);
}

bool
message_time_print_timestamp(int64_t seconds, int32_t nanos, struct buffer *out)
{
    if (seconds < TIMESTAMP_FIRST || seconds > TIMESTAMP_LAST || nanos < 0 ||
        nanos >= NANOS_PER_SECOND)
        return false;
    struct tm parts;
    time_t time = (time_t)seconds;
    gmtime_r(&time, &parts);
    buffer_print(out, "%04d-%02d-%02dT%02d:%02d:%02d", parts.tm_year + 1900, parts.tm_mon + 1,
                 parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
    append_fraction(out, nanos);
    buffer_append_byte(out, 'Z');
    return true;
}

bool
message_time_print_duration(int64_t seconds, int32_t nanos, struct buffer *out)
{
    bool is_mixed = (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0);
    if (seconds < -DURATION_LAST || seconds > DURATION_LAST || nanos <= -NANOS_PER_SECOND ||
        nanos >= NANOS_PER_SECOND || is_mixed || (nanos && imaxabs(seconds) == DURATION_LAST))
        return false;
    bool is_negative = seconds < 0 || nanos < 0;
    buffer_print(out, "%s%" PRIdMAX, is_negative ? "-" : "", imaxabs(seconds));
    append_fraction(out, is_negative ? -nanos : nanos);
    buffer_append_byte(out, 's');
    return true;
}

/* ---- messages ---- */

Google__Protobuf__Timestamp *
message_time_new(int64_t unix_ns, struct arena *arena)
{
    Google__Protobuf__Timestamp *time = arena_alloc(arena, sizeof *time);
    google__protobuf__timestamp__init(time);
    time->seconds = unix_ns / 1000000000;
    time->nanos = (int32_t)(unix_ns % 1000000000);
    return time;
}
