/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/grpc_text.c */
#include "rpc/grpc/grpc_text.h"

#include <string.h>

#include "check.h"

static void
check_timeout(const char *text, uint64_t expected)
{
    uint64_t nanoseconds = 12345;
    CHECK(grpc_text_parse_timeout(text, strlen(text), &nanoseconds));
    CHECK_NUMBER(nanoseconds, expected);
}

static void
check_no_timeout(const char *text)
{
    uint64_t nanoseconds;
    CHECK(!grpc_text_parse_timeout(text, strlen(text), &nanoseconds));
}

static void
timeouts_have_six_units(void)
{
    check_timeout("1n", 1);
    check_timeout("1994324u", UINT64_C(1994324000));
    check_timeout("1985m", UINT64_C(1985000000));
    check_timeout("2S", UINT64_C(2000000000));
    check_timeout("3M", UINT64_C(180000000000));
    check_timeout("4H", UINT64_C(14400000000000));
    check_timeout("0n", 0);
    check_timeout("00000007S", UINT64_C(7000000000));
    check_timeout("99999999S", UINT64_C(99999999000000000));
}

static void
a_timeout_beyond_64_bits_saturates(void)
{
    check_timeout("5124095H", UINT64_C(5124095) * UINT64_C(3600000000000));
    check_timeout("5124096H", UINT64_MAX);
    check_timeout("99999999H", UINT64_MAX);
}

static void
garbage_is_no_timeout(void)
{
    static const char *const garbage[] = {
        "",    "n",    "1",  "12345678", "123456789n", "-1n",  "+1n", " 1n", "1 n",
        "1n ", "1.5S", "1s", "1h",       "1x",         "0x1n", "1nn", "n1",  "\xd9\xa1n"};
    for (size_t i = 0; i < COUNT_OF(garbage); i++)
        check_no_timeout(garbage[i]);
    uint64_t nanoseconds;
    CHECK(!grpc_text_parse_timeout("1\0n", 3, &nanoseconds));
}

static void
check_printed_timeout(uint64_t nanoseconds, const char *expected)
{
    char text[16] = "";
    CHECK_NUMBER(grpc_text_print_timeout(nanoseconds, text), strlen(expected));
    CHECK_TEXT(text, expected);
}

static void
a_timeout_is_printed_in_the_finest_unit_that_fits(void)
{
    check_printed_timeout(0, "1n");
    check_printed_timeout(1, "1n");
    check_printed_timeout(99999999, "99999999n");
    check_printed_timeout(100000000, "100000u");
    check_printed_timeout(100000001, "100001u");
    check_printed_timeout(UINT64_C(99999999000), "99999999u");
    check_printed_timeout(UINT64_C(99999999001), "100000m"); /* 100000000u has nine digits */
    check_printed_timeout(UINT64_C(5000000000), "5000000u");
    check_printed_timeout(UINT64_C(3600000000000), "3600000m");
    check_printed_timeout(UINT64_C(100000000000000), "100000S");
    check_printed_timeout(UINT64_C(1000000000000000000), "16666667M");
    check_printed_timeout(UINT64_MAX, "5124096H");
}

static void
check_message(const char *text, size_t limit, const char *expected)
{
    struct buffer out AUTO(buffer_clear) = {0};
    grpc_text_encode_message(text, limit, &out);
    CHECK_TEXT(buffer_text(&out), expected);
}

static void
messages_are_percent_encoded(void)
{
    check_message("", 100, "");
    check_message("volume \"x\" is ~gone", 100, "volume \"x\" is ~gone");
    check_message("100%", 100, "100%25");
    check_message("a\nb\x7f", 100, "a%0Ab%7F");
    check_message("caf\xc3\xa9", 100, "caf%C3%A9");
    check_message("\xff", 100, "%FF");
    /* The special_status_message of gRPC's interoperability tests. */
    check_message("\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP "
                  "\xf0\x9f\x98\x88\t\n",
                  200,
                  "%09%0Atest with whitespace%0D%0Aand Unicode BMP %E2%98%BA and non-BMP "
                  "%F0%9F%98%88%09%0A");
}

/* HTTP/2 forbids them, and the client would get PROTOCOL_ERROR instead of the status. */
static void
messages_neither_begin_nor_end_with_a_blank(void)
{
    check_message(" ", 100, "%20");
    check_message(" a ", 100, "%20a%20");
    check_message("a  ", 100, "a %20");
    check_message("a b", 2, "a");
    check_message("a  \xc3\xa9", 5, "a");
    check_message("a ", 3, "a");
    check_message("a ", 4, "a%20");
}

static void
messages_are_cut_between_characters(void)
{
    check_message("abc", 0, "");
    check_message("abc", 2, "ab");
    check_message("a%b", 3, "a");
    check_message("a%b", 4, "a%25");
    check_message("a\xe2\x98\xba", 9, "a");
    check_message("a\xe2\x98\xba", 10, "a%E2%98%BA");
    check_message("\xf0\x9f\x98\x88z", 11, "");
    check_message("\xf0\x9f\x98\x88z", 12, "%F0%9F%98%88");
    check_message("\xf0\x9f\x98\x88z", 13, "%F0%9F%98%88z");
}

static void
check_decoded(const char *text, const char *expected)
{
    struct buffer out AUTO(buffer_clear) = {0};
    grpc_text_decode_message(text, strlen(text), &out);
    CHECK_TEXT(buffer_text(&out), expected);
}

static void
messages_are_decoded_and_broken_escapes_stay(void)
{
    check_decoded("", "");
    check_decoded("caf%C3%A9", "caf\xc3\xa9");
    check_decoded("caf%c3%a9", "caf\xc3\xa9");
    check_decoded("%25%32%35", "%25");
    check_decoded("%", "%");
    check_decoded("100%", "100%");
    check_decoded("%4", "%4");
    check_decoded("%4g", "%4g");
    check_decoded("%g4%41", "%g4A");
    check_decoded("%%41", "%A");
    check_decoded("a b+c", "a b+c");
    struct buffer out AUTO(buffer_clear) = {0};
    grpc_text_decode_message("%41", 2, &out);
    CHECK_TEXT(buffer_text(&out), "%4");
}

static bool
is_grpc(const char *text)
{
    return grpc_text_is_grpc_content_type(text, strlen(text));
}

static void
content_types_of_grpc_are_known(void)
{
    CHECK(is_grpc("application/grpc"));
    CHECK(is_grpc("application/grpc+proto"));
    CHECK(is_grpc("application/grpc;charset=utf-8"));
    CHECK(is_grpc("Application/GRPC+json"));
    CHECK(!is_grpc(""));
    CHECK(!is_grpc("application/grp"));
    CHECK(!is_grpc("application/grpc-web"));
    CHECK(!is_grpc("application/grpc-web+proto"));
    CHECK(!is_grpc("application/grpcx"));
    CHECK(!is_grpc(" application/grpc"));
    CHECK(!is_grpc("application/json"));
    CHECK(grpc_text_is_grpc_content_type("application/grpc-web", strlen("application/grpc")));
}

static void
http_statuses_have_codes(void)
{
    CHECK_NUMBER(grpc_text_code_of_http_status(400), CODE_INTERNAL);
    CHECK_NUMBER(grpc_text_code_of_http_status(401), CODE_UNAUTHENTICATED);
    CHECK_NUMBER(grpc_text_code_of_http_status(403), CODE_PERMISSION_DENIED);
    CHECK_NUMBER(grpc_text_code_of_http_status(404), CODE_UNIMPLEMENTED);
    CHECK_NUMBER(grpc_text_code_of_http_status(429), CODE_UNAVAILABLE);
    CHECK_NUMBER(grpc_text_code_of_http_status(502), CODE_UNAVAILABLE);
    CHECK_NUMBER(grpc_text_code_of_http_status(503), CODE_UNAVAILABLE);
    CHECK_NUMBER(grpc_text_code_of_http_status(504), CODE_UNAVAILABLE);
    CHECK_NUMBER(grpc_text_code_of_http_status(200), CODE_UNKNOWN);
    CHECK_NUMBER(grpc_text_code_of_http_status(500), CODE_UNKNOWN);
    CHECK_NUMBER(grpc_text_code_of_http_status(0), CODE_UNKNOWN);
}

static void
resets_have_codes(void)
{
    static const enum code expected[] = {
        CODE_INTERNAL,           /* NO_ERROR */
        CODE_INTERNAL,           /* PROTOCOL_ERROR */
        CODE_INTERNAL,           /* INTERNAL_ERROR */
        CODE_INTERNAL,           /* FLOW_CONTROL_ERROR */
        CODE_INTERNAL,           /* SETTINGS_TIMEOUT */
        CODE_INTERNAL,           /* STREAM_CLOSED */
        CODE_INTERNAL,           /* FRAME_SIZE_ERROR */
        CODE_UNAVAILABLE,        /* REFUSED_STREAM */
        CODE_CANCELLED,          /* CANCEL */
        CODE_INTERNAL,           /* COMPRESSION_ERROR */
        CODE_INTERNAL,           /* CONNECT_ERROR */
        CODE_RESOURCE_EXHAUSTED, /* ENHANCE_YOUR_CALM */
        CODE_PERMISSION_DENIED,  /* INADEQUATE_SECURITY */
        CODE_INTERNAL,           /* HTTP_1_1_REQUIRED */
    };
    for (uint32_t i = 0; i < COUNT_OF(expected); i++)
        CHECK_NUMBER(grpc_text_code_of_rst(i), expected[i]);
    CHECK_NUMBER(grpc_text_code_of_rst(UINT32_MAX), CODE_INTERNAL);
}

static bool
is_key(const char *text)
{
    return grpc_text_is_valid_metadata_key(text, strlen(text));
}

static void
metadata_keys_are_lower_case_and_not_grpcs_own(void)
{
    CHECK(is_key("x"));
    CHECK(is_key("controllerid"));
    CHECK(is_key("my_key-1.bin-bin"));
    CHECK(is_key("grpc"));
    CHECK(is_key("grpcx-y"));
    CHECK(!is_key(""));
    CHECK(!is_key("Key"));
    CHECK(!is_key("a b"));
    CHECK(!is_key(":path"));
    CHECK(!is_key("grpc-"));
    CHECK(!is_key("grpc-timeout"));
    CHECK(!is_key("k\xc3\xa9y"));
    CHECK(!grpc_text_is_valid_metadata_key("a\0", 2));
}

static void
metadata_values_are_printable_ascii(void)
{
    CHECK(grpc_text_is_valid_metadata_value("", 0));
    CHECK(grpc_text_is_valid_metadata_value("! ~", 3));
    CHECK(!grpc_text_is_valid_metadata_value(" ~", 2));
    CHECK(!grpc_text_is_valid_metadata_value("~ ", 2));
    CHECK(!grpc_text_is_valid_metadata_value(" ", 1));
    CHECK(!grpc_text_is_valid_metadata_value("a\tb", 3));
    CHECK(!grpc_text_is_valid_metadata_value("a\n", 2));
    CHECK(!grpc_text_is_valid_metadata_value("\x7f", 1));
    CHECK(!grpc_text_is_valid_metadata_value("\xc3\xa9", 2));
    CHECK(!grpc_text_is_valid_metadata_value("\0", 1));
}

int
main(void)
{
    timeouts_have_six_units();
    a_timeout_beyond_64_bits_saturates();
    garbage_is_no_timeout();
    a_timeout_is_printed_in_the_finest_unit_that_fits();
    messages_are_percent_encoded();
    messages_neither_begin_nor_end_with_a_blank();
    messages_are_cut_between_characters();
    messages_are_decoded_and_broken_escapes_stay();
    content_types_of_grpc_are_known();
    http_statuses_have_codes();
    resets_have_codes();
    metadata_keys_are_lower_case_and_not_grpcs_own();
    metadata_values_are_printable_ascii();
    return check_report("grpc_text");
}
