/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool utf8_is_valid(const void *bytes, size_t size);

/* Decodes the first character: returns its number of bytes, or 0 if it is invalid. */
size_t utf8_decode(const void *bytes, size_t size, uint32_t *code_point);

/* How many bytes, at most `limit`, can be kept without cutting a character. */
size_t utf8_cut(const void *bytes, size_t size, size_t limit);

#endif
