/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: see base64.h. */
#include "base/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(const void *bytes, size_t size, bool padded, struct buffer *out)
{
    const uint8_t *next = bytes;
    while (size) {
        size_t count = size < 3 ? size : 3;
        uint8_t group[3] = {0};
        memcpy(group, next, count);
        uint32_t bits = (uint32_t)group[0] << 16 | (uint32_t)group[1] << 8 | group[2];
        char text[4];
        for (size_t i = 0; i < 4; i++)
            text[i] = i <= count ? alphabet[bits >> (18 - 6 * i) & 63] : '=';
        buffer_append(out, text, padded ? 4 : count + 1);
        next += count;
        size -= count;
    }
}

/* The six bits of a character, or -1. */
static int
bits_of(char character)
{
    if (character >= 'A' && character <= 'Z')
        return character - 'A';
    if (character >= 'a' && character <= 'z')
        return character - 'a' + 26;
    if (character >= '0' && character <= '9')
        return character - '0' + 52;
    return character == '+' ? 62 : character == '/' ? 63 : -1;
}

static size_t
size_without_padding(const char *text, size_t size)
{
    if (!size || size % 4 || text[size - 1] != '=')
        return size;
    return text[size - 2] == '=' ? size - 2 : size - 1;
}

bool
base64_decode(const char *text, size_t size, struct buffer *out)
{
    size = size_without_padding(text, size);
    if (size % 4 == 1)
        return false;
    uint8_t *next = buffer_reserve(out, size / 4 * 3 + 3);
    uint8_t *start = next;
    uint32_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        int value = bits_of(text[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4)
            *next++ = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    out->size += (size_t)(next - start);
    return true;
}
