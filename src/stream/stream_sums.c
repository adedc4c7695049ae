/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of streams: see stream_sums.h. The sum of a position is the XXH3-128 of the sum before the
 * last command and of that command's own XXH3-128. So it has no state but its value, and a receiver
 * that begins anew continues from the 16 bytes that were saved. SHA-256 takes six
 * times as long as both sums and would not protect better: the peer that makes the stream makes the
 * sum too.
 */
#include "stream/stream_sums.h"

#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
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

/* Three ranges of this size are summed at a time: each sum waits for the one before it. */
#define LANE_BYTES 2048u
/* x to the power of 8 * LANE_BYTES - 32, and of twice as many bytes, in the order of the bits. */
#define BEHIND_ONE_LANE INT64_C(0x1a0f717c4)
#define BEHIND_TWO_LANES INT64_C(0x18714ea86)

/* The sum as it would be behind so many zeros. */
__attribute__((target("sse4.2,pclmul"))) static uint64_t
move_behind(uint64_t crc, int64_t power)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi64_si128(power), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

static uint64_t
load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t
add_lanes(uint64_t crc, const uint8_t *bytes)
{
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < LANE_BYTES; i += sizeof crc) {
        crc = _mm_crc32_u64(crc, load_word(bytes + i));
        second = _mm_crc32_u64(second, load_word(bytes + LANE_BYTES + i));
        third = _mm_crc32_u64(third, load_word(bytes + 2 * LANE_BYTES + i));
    }
    return move_behind(crc, BEHIND_TWO_LANES) ^ move_behind(second, BEHIND_ONE_LANE) ^ third;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t
add_by_processor(uint32_t start, const uint8_t *bytes, size_t size)
{
    uint64_t crc = start;
    for (; size >= 3 * LANE_BYTES; bytes += 3 * LANE_BYTES, size -= 3 * LANE_BYTES)
        crc = add_lanes(crc, bytes);
    for (; size >= sizeof crc; bytes += sizeof crc, size -= sizeof crc)
        crc = _mm_crc32_u64(crc, load_word(bytes));
    for (; size; bytes++, size--)
        crc = _mm_crc32_u8((uint32_t)crc, *bytes);
    return (uint32_t)crc;
}

static uint32_t
add(uint32_t crc, const uint8_t *bytes, size_t size)
{
    bool is_able = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    return is_able ? add_by_processor(crc, bytes, size) : add_by_table(crc, bytes, size);
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
