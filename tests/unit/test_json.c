/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/json.c */
#include "base/json.h"

#include <jansson.h>
#include <string.h>

#include "check.h"

static void
check_string(const char *text, size_t size, const char *expected)
{
    struct buffer out AUTO(buffer_clear) = {0};
    json_append_string(&out, text, size);
    CHECK_TEXT(buffer_text(&out), expected);
}

static void
plain_text_gets_quotes_only(void)
{
    check_string("", 0, "\"\"");
    check_string("unix:/run/x.sock", 16, "\"unix:/run/x.sock\"");
    check_string("caf\xc3\xa9 \xf0\x9f\x9a\x80", 10, "\"caf\xc3\xa9 \xf0\x9f\x9a\x80\"");
}

static void
special_characters_are_escaped(void)
{
    check_string("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    check_string("\n\r\t\b", 4, "\"\\n\\r\\t\\u0008\"");
    check_string("\0\x1f", 2, "\"\\u0000\\u001f\"");
    check_string("\x7f", 1, "\"\\u007f\"");
    check_string("\xc2\x9b", 2, "\"\\u009b\"");
    check_string("\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\\u2028\\u2029\"");
}

static void
bytes_that_are_not_utf8_are_replaced(void)
{
    check_string("a\xff"
                 "b",
                 3,
                 "\"a\xef\xbf\xbd"
                 "b\"");
    check_string("\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    check_string("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Every pair of bytes, read by a parser of JSON that is not ours. */
static void
the_result_is_always_valid_json(void)
{
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        char bytes[2] = {(char)(pair >> 8), (char)pair};
        struct buffer out AUTO(buffer_clear) = {0};
        json_append_string(&out, bytes, sizeof bytes);
        json_t *json =
            json_loadb(buffer_text(&out), out.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        CHECK(json_is_string(json));
        if (bytes[0] > 0 && bytes[1] > 0 && json)
            CHECK(json_string_length(json) == 2 && !memcmp(json_string_value(json), bytes, 2));
        json_decref(json);
    }
}

int
main(void)
{
    plain_text_gets_quotes_only();
    special_characters_are_escaped();
    bytes_that_are_not_utf8_are_replaced();
    the_result_is_always_valid_json();
    return check_report("json");
}
