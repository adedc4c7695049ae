/* SPDX-License-Identifier: Apache-2.0 */
/*
 * google.protobuf.Timestamp and Duration, and their text ("2026-11-15T19:40:00.500Z" and "1.500s").
 */
#ifndef MESSAGE_TIME_H
#define MESSAGE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "google/protobuf/timestamp.pb-c.h"

/* The message for a Unix time in nanoseconds, in the arena. */
Google__Protobuf__Timestamp *message_time_new(int64_t unix_ns, struct arena *arena);

/* RFC 3339 with 'Z' or an offset, years 1 to 9999. Returns false for anything else. */
bool message_time_parse_timestamp(const char *text, int64_t *seconds, int32_t *nanos);

/*
 * Up to nine decimals, at most 315,576,000,000 seconds in either direction. Returns false for
 * anything else.
 */
bool message_time_parse_duration(const char *text, int64_t *seconds, int32_t *nanos);

/*
 * Appends the text with 0, 3, 6 or 9 decimals. Returns false and appends nothing if out of range.
 */
bool message_time_print_timestamp(int64_t seconds, int32_t nanos, struct buffer *out);
bool message_time_print_duration(int64_t seconds, int32_t nanos, struct buffer *out);

#endif
