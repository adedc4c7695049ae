/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool utf8_is_valid(const void *bytes, size_t size);

/* The character at the front: gives how many bytes it has, or 0 if there is no valid one. */
size_t utf8_decode(const void *bytes, size_t size, uint32_t *code_point);

/* How many bytes, `limit` at most, can be kept without a cut through a character. */
size_t utf8_cut(const void *bytes, size_t size, size_t limit);

#endif
