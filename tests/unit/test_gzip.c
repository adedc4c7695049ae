/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/gzip.c */
#include "rpc/grpc/gzip.h"

#include "base/memory.h"
#include "check.h"
#include "packed.h"

#define LIMIT ((size_t)4 << 20)

static enum code
inflate_code(const struct buffer *packed, size_t size, size_t limit, struct buffer *plain)
{
    plain->size = 0;
    struct error *error AUTO(error_cleanup) =
        gzip_inflate(packed->bytes, size, buffer_reserve(plain, limit), limit, &plain->size);
    return error ? error->code : CODE_OK;
}

static void
texts_of_any_size_come_back(void)
{
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 32768, 100000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct buffer text AUTO(buffer_clear) = {0};
        struct buffer packed AUTO(buffer_clear) = {0};
        struct buffer plain AUTO(buffer_clear) = {0};
        for (size_t j = 0; j < sizes[i]; j++)
            buffer_append_byte(&text, (uint8_t)(j * j >> 7));
        packed_append(&packed, text.bytes, text.size, PACKED_GZIP);
        CHECK_NUMBER(inflate_code(&packed, packed.size, LIMIT, &plain), CODE_OK);
        CHECK_NUMBER(plain.size, sizes[i]);
        CHECK(!sizes[i] || memcmp(plain.bytes, text.bytes, sizes[i]) == 0);
    }
}

static void
the_limit_is_the_largest_size_that_is_allowed(void)
{
    static const uint8_t zeros[50000];
    struct buffer packed AUTO(buffer_clear) = {0};
    struct buffer plain AUTO(buffer_clear) = {0};
    packed_append(&packed, zeros, sizeof zeros, PACKED_GZIP);
    CHECK_NUMBER(inflate_code(&packed, packed.size, sizeof zeros, &plain), CODE_OK);
    CHECK_NUMBER(inflate_code(&packed, packed.size, sizeof zeros - 1, &plain),
                 CODE_RESOURCE_EXHAUSTED);
}

/* 64 MiB of zeros are 64 KiB on the wire. */
static void
a_bomb_is_refused(void)
{
    const size_t size = (size_t)64 << 20;
    uint8_t *zeros AUTO(memory_cleanup) = memory_zeroed(size);
    struct buffer packed AUTO(buffer_clear) = {0};
    struct buffer plain AUTO(buffer_clear) = {0};
    packed_append(&packed, zeros, size, PACKED_GZIP);
    CHECK(packed.size < 100000);
    CHECK_NUMBER(inflate_code(&packed, packed.size, LIMIT, &plain), CODE_RESOURCE_EXHAUSTED);
}

static void
a_text_that_was_cut_off_anywhere_is_refused(void)
{
    static const char text[] =
        "a text that is a little longer than its compressed form, form, form";
    struct buffer packed AUTO(buffer_clear) = {0};
    packed_append(&packed, text, sizeof text, PACKED_GZIP);
    for (size_t size = 0; size < packed.size; size++) {
        struct buffer plain AUTO(buffer_clear) = {0};
        CHECK_NUMBER(inflate_code(&packed, size, LIMIT, &plain), CODE_INTERNAL);
    }
}

static void
a_wrong_checksum_is_refused(void)
{
    struct buffer packed AUTO(buffer_clear) = {0};
    struct buffer plain AUTO(buffer_clear) = {0};
    packed_append(&packed, "text", 4, PACKED_GZIP);
    packed.bytes[packed.size - 6] ^= 1;
    CHECK_NUMBER(inflate_code(&packed, packed.size, LIMIT, &plain), CODE_INTERNAL);
}

static void
other_formats_are_refused(void)
{
    struct buffer deflated AUTO(buffer_clear) = {0};
    struct buffer plain AUTO(buffer_clear) = {0};
    packed_append(&deflated, "text", 4, PACKED_ZLIB);
    CHECK_NUMBER(inflate_code(&deflated, deflated.size, LIMIT, &plain), CODE_INTERNAL);
    struct buffer text = {.bytes = (uint8_t *)"not compressed at all"};
    CHECK_NUMBER(inflate_code(&text, 21, LIMIT, &plain), CODE_INTERNAL);
}

int
main(void)
{
    texts_of_any_size_come_back();
    the_limit_is_the_largest_size_that_is_allowed();
    a_bomb_is_refused();
    a_text_that_was_cut_off_anywhere_is_refused();
    a_wrong_checksum_is_refused();
    other_formats_are_refused();
    return check_report("test_gzip");
}
