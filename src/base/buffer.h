/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer. `bytes` may be NULL while `size` is 0. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct buffer {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

void buffer_append(struct buffer *buffer, const void *bytes, size_t size);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_byte(struct buffer *buffer, uint8_t byte);
void buffer_print(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);

/* Space for `size` more bytes at the end; the caller fills it and adds to `size` what it wrote. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t size);

/* The bytes as a C string: followed by a NUL that is not counted in `size`. */
const char *buffer_text(struct buffer *buffer);

/*
 * Frees the bytes; the buffer is empty and usable. Also for `struct buffer b AUTO(buffer_clear) =
 * {0}`.
 */
void buffer_clear(struct buffer *buffer);

#endif
