/* SPDX-License-Identifier: Apache-2.0 */
/* The small texts of gRPC, and the base64 and UTF-8 that go with them, on any bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "rpc/grpc/grpc_text.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static bool
is_same(const struct buffer *buffer, const void *bytes, size_t size)
{
    return buffer->size == size && (!size || !memcmp(buffer->bytes, bytes, size));
}

/*
 * What is printed is never less than what was to be printed, never longer than eight digits, and
 * exact to 1 in 10000.
 */
static void
check_timeout(uint64_t nanoseconds)
{
    char text[16];
    uint64_t again = 0;
    size_t size = grpc_text_print_timeout(nanoseconds, text);
    REQUIRE(size == strlen(text) && size >= 2 && size <= 9 && text[0] != '0');
    REQUIRE(grpc_text_parse_timeout(text, size, &again));
    REQUIRE(again >= nanoseconds);
    REQUIRE(again - nanoseconds <= nanoseconds / 10000 + 1);
}

/* A cut message is the start of the whole one, of whole characters, and fits. */
static void
check_cut(const char *text, const struct buffer *whole, size_t limit)
{
    struct buffer cut AUTO(buffer_clear) = {0};
    struct buffer decoded AUTO(buffer_clear) = {0};
    grpc_text_encode_message(text, limit, &cut);
    REQUIRE(cut.size <= limit && cut.size <= whole->size);
    REQUIRE(is_same(&cut, whole->bytes, cut.size));
    grpc_text_decode_message((const char *)cut.bytes, cut.size, &decoded);
    REQUIRE(decoded.size <= strlen(text) && is_same(&decoded, text, decoded.size));
    if (utf8_is_valid(text, strlen(text)))
        REQUIRE(utf8_is_valid(decoded.bytes, decoded.size));
    REQUIRE(grpc_text_is_valid_metadata_value((const char *)cut.bytes, cut.size));
    /* The next character, of at most twelve encoded bytes, did not fit; blanks before it went with it. */
    size_t kept = cut.size;
    while (kept < whole->size && kept < limit && whole->bytes[kept] == ' ')
        kept++;
    REQUIRE(cut.size == whole->size || limit - kept < 12);
}

static void
check_message(const char *text)
{
    struct buffer encoded AUTO(buffer_clear) = {0};
    struct buffer decoded AUTO(buffer_clear) = {0};
    grpc_text_encode_message(text, SIZE_MAX, &encoded);
    REQUIRE(grpc_text_is_valid_metadata_value((const char *)encoded.bytes, encoded.size));
    grpc_text_decode_message((const char *)encoded.bytes, encoded.size, &decoded);
    REQUIRE(is_same(&decoded, text, strlen(text)));
    for (size_t limit = 0; limit < 40; limit++)
        check_cut(text, &encoded, limit);
}

static void
check_base64(const uint8_t *data, size_t size, bool padded)
{
    struct buffer text AUTO(buffer_clear) = {0};
    struct buffer again AUTO(buffer_clear) = {0};
    base64_encode(data, size, padded, &text);
    REQUIRE(base64_decode((const char *)text.bytes, text.size, &again));
    REQUIRE(is_same(&again, data, size));
    again.size = 0;
    if (!base64_decode((const char *)data, size, &again))
        REQUIRE(again.size == 0);
}

/* Valid is what consists of characters only, and cuts of it stay so. */
static void
check_utf8(const uint8_t *data, size_t size)
{
    size_t start = 0, length = 0;
    uint32_t code_point;
    while ((length = utf8_decode(data + start, size - start, &code_point)))
        start += length;
    bool is_valid = utf8_is_valid(data, size);
    REQUIRE(is_valid == (start == size));
    for (size_t limit = 0; limit <= size && limit < 64; limit++) {
        size_t cut = utf8_cut(data, size, limit);
        REQUIRE(cut <= limit && limit - cut <= 3);
        REQUIRE(!is_valid || utf8_is_valid(data, cut));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text AUTO(memory_cleanup) = memory_new(size + 1);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    uint64_t nanoseconds = 0;
    if (grpc_text_parse_timeout(text, size, &nanoseconds))
        check_timeout(nanoseconds);
    memcpy(&nanoseconds, text, size < sizeof nanoseconds ? size : sizeof nanoseconds);
    check_timeout(nanoseconds);
    check_message(text);
    struct buffer decoded AUTO(buffer_clear) = {0};
    grpc_text_decode_message(text, size, &decoded);
    REQUIRE(decoded.size <= size);
    if (grpc_text_is_valid_metadata_key(text, size))
        REQUIRE(size && grpc_text_is_valid_metadata_value(text, size));
    if (grpc_text_is_grpc_content_type(text, size))
        REQUIRE(size >= strlen("application/grpc"));
    check_base64((const uint8_t *)text, size, true);
    check_base64((const uint8_t *)text, size, false);
    check_utf8((const uint8_t *)text, size);
    return 0;
}
