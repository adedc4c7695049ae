/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them. */
#include "base/size_text.h"

#include "check.h"

static int64_t
parse(const char *text)
{
    int64_t bytes = -1;
    struct error *error AUTO(error_cleanup) = size_text_parse(text, &bytes);
    return error ? -1 : bytes;
}

static const char *
print(int64_t bytes)
{
    static char text[32];
    size_text_print(bytes, text, sizeof text);
    return text;
}

int
main(void)
{
    CHECK_NUMBER(parse("0"), 0);
    CHECK_NUMBER(parse("4096"), 4096);
    CHECK_NUMBER(parse("10Ki"), 10240);
    CHECK_NUMBER(parse("10Gi"), INT64_C(10) << 30);
    CHECK_NUMBER(parse("500M"), 500000000);
    CHECK_NUMBER(parse("8388607Ti"), INT64_C(8388607) << 40);
    CHECK_NUMBER(parse("8388608Ti"), -1);
    CHECK_NUMBER(parse("99999999999999999999"), -1);
    CHECK_NUMBER(parse("-1"), -1);
    CHECK_NUMBER(parse(" 1"), -1);
    CHECK_NUMBER(parse("1 Gi"), -1);
    CHECK_NUMBER(parse("Gi"), -1);
    CHECK_NUMBER(parse(""), -1);
    CHECK_TEXT(print(0), "0 B");
    CHECK_TEXT(print(1023), "1023 B");
    CHECK_TEXT(print(1536), "1.5 KiB");
    CHECK_TEXT(print(INT64_C(10) << 30), "10 GiB");
    return check_report("test_size_text");
}
