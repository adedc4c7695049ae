/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian numbers of the repository's objects. */
#ifndef REPOSITORY_BYTES_H
#define REPOSITORY_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"

static inline uint32_t
bytes_get32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return le32toh(value);
}

static inline uint64_t
bytes_get64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return le64toh(value);
}

static inline void
bytes_set32(uint8_t *to, uint32_t value)
{
    value = htole32(value);
    memcpy(to, &value, sizeof value);
}

static inline void
bytes_set64(uint8_t *to, uint64_t value)
{
    value = htole64(value);
    memcpy(to, &value, sizeof value);
}

static inline void
bytes_append32(struct buffer *out, uint32_t value)
{
    uint8_t bytes[4];
    bytes_set32(bytes, value);
    buffer_append(out, bytes, sizeof bytes);
}

static inline void
bytes_append64(struct buffer *out, uint64_t value)
{
    uint8_t bytes[8];
    bytes_set64(bytes, value);
    buffer_append(out, bytes, sizeof bytes);
}

#endif
