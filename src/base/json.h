/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>

#include "base/buffer.h"

/*
 * Appends the text as a JSON string with its quotes. Escapes control characters, including DEL,
 * U+0080 to U+009F and the line separators, for the sake of terminals. Bytes that are not UTF-8
 * become U+FFFD: the result is always valid.
 */
void json_append_string(struct buffer *out, const char *text, size_t size);

/* Appends a member with a text to an object, which begins with the first byte of the buffer. */
void json_append_member(struct buffer *out, const char *name, const char *text);

#endif
