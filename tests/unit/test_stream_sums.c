/* SPDX-License-Identifier: Apache-2.0 */
/* The checksums are those of the format, however they are computed. */
#include "stream/stream_sums.c"

#include "check.h"

/* From the definition: bit by bit. */
static uint32_t
add_by_bit(uint32_t crc, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size * 8; i++) {
        uint32_t bit = (crc ^ (uint32_t)(bytes[i / 8] >> i % 8)) & 1;
        crc = (crc >> 1) ^ (bit ? 0x82f63b78 : 0);
    }
    return crc;
}

static void
sums_are_those_of_the_definition(void)
{
    static uint8_t bytes[40000];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 9 + i / 1000);
    for (size_t size = 0; size < sizeof bytes; size += size < 300 ? 1 : 1999) {
        uint32_t expected = add_by_bit(1234567, bytes, size);
        CHECK_NUMBER(add_by_table(1234567, bytes, size), expected);
        CHECK_NUMBER(add(1234567, bytes, size), expected);
    }
    /* The well-known value has other first and last steps. */
    CHECK_NUMBER(~add(UINT32_MAX, (const uint8_t *)"123456789", 9), 0xe3069283);
}

static void
checksum_counts_as_zero(void)
{
    uint8_t command[] = {4, 0, 0, 0, 21, 0, 0, 0, 0, 0, 'd', 'a', 't', 'a'};
    uint32_t expected = add_by_bit(0, command, sizeof command);
    memset(command + 6, 0xff, 4);
    CHECK_NUMBER(stream_sums_check(command, sizeof command), expected);
}

static void
sum_depends_on_all_commands_and_their_order(void)
{
    struct stream_position a = {0}, b = {0};
    stream_sums_advance(&a, (const uint8_t *)"one", 3);
    stream_sums_advance(&a, (const uint8_t *)"two", 3);
    stream_sums_advance(&b, (const uint8_t *)"two", 3);
    stream_sums_advance(&b, (const uint8_t *)"one", 3);
    CHECK_NUMBER(a.offset, 6);
    CHECK(memcmp(a.sum, b.sum, STREAM_SUM_BYTES) != 0);
}

int
main(void)
{
    sums_are_those_of_the_definition();
    checksum_counts_as_zero();
    sum_depends_on_all_commands_and_their_order();
    return check_report("stream_sums");
}
