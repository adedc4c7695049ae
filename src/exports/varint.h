/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and texts of manifests: numbers are LEB128 (7 bits a byte, the lowest first), times are
 * zigzag numbers, texts have their size before them and a NUL behind them.
 */
#ifndef EXPORTS_VARINT_H
#define EXPORTS_VARINT_H

#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"

static inline void
varint_put(struct buffer *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buffer_append_byte(out, (uint8_t)(number | 0x80));
    buffer_append_byte(out, (uint8_t)number);
}

static inline void
varint_put_signed(struct buffer *out, int64_t number)
{
    varint_put(out, ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0));
}

static inline void
varint_put_text(struct buffer *out, const char *text, size_t size)
{
    varint_put(out, size);
    buffer_append(out, text, size);
    buffer_append_byte(out, 0);
}

/* Bytes that are read. After the first error nothing more is there, and `is_bad` is set. */
struct varint_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
};

static inline void
varint_fail(struct varint_reader *in)
{
    in->is_bad = true;
    in->at = in->end;
}

/* A longer form than necessary is an error: every manifest has one form. */
static inline uint64_t
varint_get(struct varint_reader *in)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        if ((shift == 63 && byte > 1) || (shift && !byte))
            break;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number;
    }
    varint_fail(in);
    return 0;
}

/* The same, at most `most`. */
static inline uint64_t
varint_get_up_to(struct varint_reader *in, uint64_t most)
{
    uint64_t number = varint_get(in);
    if (number > most)
        varint_fail(in);
    return number > most ? 0 : number;
}

static inline int64_t
varint_get_signed(struct varint_reader *in)
{
    uint64_t number = varint_get(in);
    return (int64_t)((number >> 1) ^ (~(number & 1) + 1));
}

static inline const uint8_t *
varint_get_bytes(struct varint_reader *in, size_t size)
{
    const uint8_t *bytes = in->at;
    if ((size_t)(in->end - in->at) < size) {
        varint_fail(in);
        return NULL;
    }
    in->at += size;
    return bytes;
}

/* Without NUL bytes within. "" if it is bad. */
static inline const char *
varint_get_text(struct varint_reader *in, size_t most, size_t *size)
{
    *size = (size_t)varint_get_up_to(in, most);
    const uint8_t *text = varint_get_bytes(in, *size + 1);
    if (!text || text[*size] || memchr(text, 0, *size)) {
        varint_fail(in);
        *size = 0;
        return "";
    }
    return (const char *)text;
}

#endif
