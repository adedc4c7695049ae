/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of streams: see stream_sums.h. The sum of a position is the XXH3-128 of the sum before the
 * last command and of that command's own XXH3-128. So it has no state but its value, and a receiver
 * that begins anew continues from the 16 bytes that were saved. SHA-256 would take longer than all
 * the rest of a transfer. It would not protect better: the peer that makes the stream makes the sum
 * too.
 */
#include "stream/stream_sums.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "stream/stream_format.h"

#define CHECKSUM_OFFSET 6u
#define CHECKSUM_BYTES 4u

/* The polynomial for each value of four bits. */
static const uint32_t nibbles[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t
add_by_table(uint32_t crc, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ nibbles[crc & 15];
        crc = (crc >> 4) ^ nibbles[crc & 15];
    }
    return crc;
}

#ifdef __x86_64__

__attribute__((target("sse4.2"))) static uint32_t
add_by_processor(uint32_t crc, const uint8_t *bytes, size_t size)
{
    uint64_t wide = crc;
    for (; size >= sizeof wide; bytes += sizeof wide, size -= sizeof wide) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size; bytes++, size--)
        crc = __builtin_ia32_crc32qi(crc, *bytes);
    return crc;
}

static uint32_t
add(uint32_t crc, const uint8_t *bytes, size_t size)
{
    return __builtin_cpu_supports("sse4.2") ? add_by_processor(crc, bytes, size)
                                            : add_by_table(crc, bytes, size);
}

#else

static uint32_t
add(uint32_t crc, const uint8_t *bytes, size_t size)
{
    return add_by_table(crc, bytes, size);
}

#endif

uint32_t
stream_sums_check(const uint8_t *command, size_t size)
{
    static const uint8_t zeros[CHECKSUM_BYTES];
    uint32_t crc = add(0, command, CHECKSUM_OFFSET);
    crc = add(crc, zeros, sizeof zeros);
    return add(crc, command + STREAM_COMMAND_BYTES, size - STREAM_COMMAND_BYTES);
}

void
stream_sums_advance(struct stream_position *position, const uint8_t *command, size_t size)
{
    XXH128_canonical_t own, both[2];
    XXH128_canonicalFromHash(&own, XXH3_128bits(command, size));
    memcpy(&both[0], position->sum, STREAM_SUM_BYTES);
    both[1] = own;
    XXH128_canonicalFromHash(&own, XXH3_128bits(both, sizeof both));
    memcpy(position->sum, &own, STREAM_SUM_BYTES);
    position->offset += size;
}
