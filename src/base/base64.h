/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 with the standard alphabet (A-Z a-z 0-9 + /). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Appends the text; `padded`: '=' fills it to a multiple of four. */
void base64_encode(const void *bytes, size_t size, bool padded, struct buffer *out);

/*
 * Appends the bytes of a text with or without padding. Returns false, and leaves `out` as it was,
 * for any character outside the alphabet (also white space, '-' and '_'), for wrong padding, and
 * for an impossible length. Unused bits of the last character are ignored: some encoders do not
 * clear them.
 */
bool base64_decode(const char *text, size_t size, struct buffer *out);

#endif
