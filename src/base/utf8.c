/* SPDX-License-Identifier: Apache-2.0 */
/* Checking and truncating UTF-8: see utf8.h. */
#include "base/utf8.h"

#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool
is_continuation(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t
utf8_decode(const void *bytes, size_t size, uint32_t *code_point)
{
    static const uint32_t least[] = {[2] = 0x80, [3] = 0x800, [4] = 0x10000};
    const uint8_t *byte = bytes;
    if (!size)
        return 0;
    if (byte[0] < 0x80) {
        *code_point = byte[0];
        return 1;
    }
    size_t length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    if (byte[0] < 0xc0 || byte[0] > 0xf7 || size < length)
        return 0;
    uint32_t value = byte[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (!is_continuation(byte[i]))
            return 0;
        value = value << 6 | (byte[i] & 0x3fu);
    }
    bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
    if (value < least[length] || value > 0x10ffff || is_surrogate)
        return 0;
    *code_point = value;
    return length;
}

static bool
is_ascii_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return !(word & HIGH_BITS);
}

bool
utf8_is_valid(const void *bytes, size_t size)
{
    const uint8_t *next = bytes;
    while (size) {
        uint32_t ignored;
        size_t step = size >= 8 && is_ascii_word(next) ? 8 : utf8_decode(next, size, &ignored);
        if (!step)
            return false;
        next += step;
        size -= step;
    }
    return true;
}

size_t
utf8_cut(const void *bytes, size_t size, size_t limit)
{
    const uint8_t *byte = bytes;
    if (size <= limit)
        return size;
    size_t start = limit;
    while (start > 0 && limit - start < 3 && is_continuation(byte[start]))
        start--;
    uint32_t ignored;
    size_t length = utf8_decode(byte + start, size - start, &ignored);
    return start + length > limit ? start : limit;
}
