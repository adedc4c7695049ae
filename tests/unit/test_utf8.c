/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/utf8.c */
#include "base/utf8.h"

#include <string.h>

#include "check.h"

static bool
is_valid(const char *text)
{
    return utf8_is_valid(text, strlen(text));
}

static void
text_of_all_lengths_is_valid(void)
{
    CHECK(utf8_is_valid("", 0));
    CHECK(utf8_is_valid("a\0b", 3));
    CHECK(is_valid("a long run of plain ASCII, longer than a word"));
    CHECK(is_valid("\xc2\x80"));
    CHECK(is_valid("\xdf\xbf"));
    CHECK(is_valid("\xe0\xa0\x80"));
    CHECK(is_valid("\xed\x9f\xbf")); /* U+D7FF, the last before the surrogates */
    CHECK(is_valid("\xee\x80\x80"));
    CHECK(is_valid("\xf0\x90\x80\x80"));
    CHECK(is_valid("\xf4\x8f\xbf\xbf")); /* U+10FFFF */
}

static void
overlong_forms_and_surrogates_are_not(void)
{
    CHECK(!is_valid("\xc0\x80"));
    CHECK(!is_valid("\xc1\xbf"));
    CHECK(!is_valid("\xe0\x9f\xbf"));
    CHECK(!is_valid("\xf0\x8f\xbf\xbf"));
    CHECK(!is_valid("\xed\xa0\x80"));
    CHECK(!is_valid("\xed\xbf\xbf"));
    CHECK(!is_valid("\xf4\x90\x80\x80")); /* U+110000 */
    CHECK(!is_valid("\xf8\x88\x80\x80\x80"));
    CHECK(!is_valid("\xff"));
}

static void
broken_sequences_are_found_at_every_offset(void)
{
    for (size_t i = 0; i < 20; i++) {
        char text[24];
        memset(text, 'a', sizeof text);
        text[i] = (char)0x80;
        CHECK(!utf8_is_valid(text, 20));
        text[i] = (char)0xe2;
        CHECK(!utf8_is_valid(text, 20));
        memcpy(text + i, "\xe2\x80\xa6", 3);
        CHECK(utf8_is_valid(text, i + 3));
        CHECK(!utf8_is_valid(text, i + 2));
        CHECK(!utf8_is_valid(text, i + 1));
    }
}

static void
decode_gives_the_code_point(void)
{
    uint32_t code_point = 0;
    CHECK_NUMBER(utf8_decode("A", 1, &code_point), 1);
    CHECK_NUMBER(code_point, 'A');
    CHECK_NUMBER(utf8_decode("\xc3\xa9!", 3, &code_point), 2);
    CHECK_NUMBER(code_point, 0xe9);
    CHECK_NUMBER(utf8_decode("\xe2\x82\xac", 3, &code_point), 3);
    CHECK_NUMBER(code_point, 0x20ac);
    CHECK_NUMBER(utf8_decode("\xf0\x9f\x9a\x80", 4, &code_point), 4);
    CHECK_NUMBER(code_point, 0x1f680);
    CHECK_NUMBER(utf8_decode("", 0, &code_point), 0);
    CHECK_NUMBER(utf8_decode("\xf0\x9f\x9a\x80", 3, &code_point), 0);
}

static void
cut_keeps_characters_whole(void)
{
    const char text[] = "a\xf0\x9f\x9a\x80z";
    const size_t size = sizeof text - 1;
    CHECK_NUMBER(utf8_cut(text, size, 100), size);
    CHECK_NUMBER(utf8_cut(text, size, size), size);
    CHECK_NUMBER(utf8_cut(text, size, 5), 5);
    CHECK_NUMBER(utf8_cut(text, size, 4), 1);
    CHECK_NUMBER(utf8_cut(text, size, 2), 1);
    CHECK_NUMBER(utf8_cut(text, size, 1), 1);
    CHECK_NUMBER(utf8_cut(text, size, 0), 0);
    /* Bytes that are no characters may be cut anywhere. */
    CHECK_NUMBER(utf8_cut("\x80\x80\x80\x80\x80", 5, 4), 4);
}

int
main(void)
{
    text_of_all_lengths_is_valid();
    overlong_forms_and_surrogates_are_not();
    broken_sequences_are_found_at_every_offset();
    decode_gives_the_code_point();
    cut_keeps_characters_whole();
    return check_report("utf8");
}
