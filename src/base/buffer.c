/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer: see buffer.h. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

uint8_t *
buffer_reserve(struct buffer *buffer, size_t size)
{
    if (size > buffer->capacity - buffer->size) {
        size_t wanted = buffer->capacity * 2 > 64 ? buffer->capacity * 2 : 64;
        if (wanted < buffer->size + size)
            wanted = buffer->size + size;
        buffer->bytes = memory_resize(buffer->bytes, wanted);
        buffer->capacity = wanted;
    }
    return buffer->bytes + buffer->size;
}

void
buffer_append(struct buffer *buffer, const void *bytes, size_t size)
{
    if (!size)
        return;
    memcpy(buffer_reserve(buffer, size), bytes, size);
    buffer->size += size;
}

void
buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

void
buffer_append_byte(struct buffer *buffer, uint8_t byte)
{
    buffer_append(buffer, &byte, 1);
}

void
buffer_print(struct buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        memory_exhausted();
    char *end = (char *)buffer_reserve(buffer, (size_t)length + 1);
    vsnprintf(end, (size_t)length + 1, format, again);
    va_end(again);
    buffer->size += (size_t)length;
}

const char *
buffer_text(struct buffer *buffer)
{
    *buffer_reserve(buffer, 1) = '\0';
    return (const char *)buffer->bytes;
}

void
buffer_clear(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
