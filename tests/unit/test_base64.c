/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/base64.c */
#include "base/base64.h"

#include <string.h>

#include "check.h"

static void
check_encodes(const char *bytes, const char *padded, const char *bare)
{
    struct buffer text AUTO(buffer_clear) = {0};
    base64_encode(bytes, strlen(bytes), true, &text);
    CHECK_TEXT(buffer_text(&text), padded);
    text.size = 0;
    base64_encode(bytes, strlen(bytes), false, &text);
    CHECK_TEXT(buffer_text(&text), bare);
}

/* NULL if the text is refused. */
static void
check_decodes(const char *text, const char *bytes)
{
    struct buffer out AUTO(buffer_clear) = {0};
    buffer_append_text(&out, "before,");
    if (!base64_decode(text, strlen(text), &out)) {
        CHECK_TEXT(buffer_text(&out), "before,");
        CHECK_TEXT(NULL, bytes);
        return;
    }
    CHECK_TEXT(buffer_text(&out) + strlen("before,"), bytes);
}

static void
the_examples_of_rfc_4648_encode_and_decode(void)
{
    static const struct {
        const char *bytes, *padded, *bare;
    } examples[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        check_encodes(examples[i].bytes, examples[i].padded, examples[i].bare);
        check_decodes(examples[i].padded, examples[i].bytes);
        check_decodes(examples[i].bare, examples[i].bytes);
    }
}

static void
all_bytes_come_back(void)
{
    uint8_t bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct buffer text AUTO(buffer_clear) = {0};
        struct buffer again AUTO(buffer_clear) = {0};
        base64_encode(bytes, size, size % 2, &text);
        CHECK(base64_decode(buffer_text(&text), text.size, &again));
        CHECK(again.size == size && (!size || !memcmp(again.bytes, bytes, size)));
    }
}

static void
other_alphabets_and_white_space_are_refused(void)
{
    check_decodes("-_-_", NULL);
    check_decodes("Zm9v\n", NULL);
    check_decodes("Zm9 ", NULL);
    check_decodes("Zm.v", NULL);
    check_decodes("\xc3\xa9Zm", NULL);
}

static void
wrong_padding_and_lengths_are_refused(void)
{
    check_decodes("Z", NULL);
    check_decodes("Zm9vY", NULL);
    check_decodes("Zg=", NULL);
    check_decodes("Zg===", NULL);
    check_decodes("Z===", NULL);
    check_decodes("====", NULL);
    check_decodes("=", NULL);
    check_decodes("Zg==Zg==", NULL);
    check_decodes("Zm9v=", NULL);
}

static void
left_over_bits_are_ignored(void)
{
    check_decodes("Zh==", "f");
    check_decodes("Zm9", "fo");
}

int
main(void)
{
    the_examples_of_rfc_4648_encode_and_decode();
    all_bytes_come_back();
    other_alphabets_and_white_space_are_refused();
    wrong_padding_and_lengths_are_refused();
    left_over_bits_are_ignored();
    return check_report("base64");
}
