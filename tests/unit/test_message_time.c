/* SPDX-License-Identifier: Apache-2.0 */
/* src/message/message_time.c */
#include "message/message_time.h"

#include "check.h"

static void
check_timestamp(const char *text, int64_t expected_seconds, int32_t expected_nanos,
                const char *canonical)
{
    int64_t seconds = 0;
    int32_t nanos = 0;
    struct buffer out AUTO(buffer_clear) = {0};
    CHECK(message_time_parse_timestamp(text, &seconds, &nanos));
    CHECK_NUMBER(seconds, expected_seconds);
    CHECK_NUMBER(nanos, expected_nanos);
    CHECK(message_time_print_timestamp(seconds, nanos, &out));
    CHECK_TEXT(buffer_text(&out), canonical ? canonical : text);
}

static void
timestamps_are_rfc_3339(void)
{
    check_timestamp("1970-01-01T00:00:00Z", 0, 0, NULL);
    check_timestamp("2001-09-09T01:46:40.000000007Z", 1000000000, 7, NULL);
    check_timestamp("2024-02-29T23:59:59.000001Z", 1709251199, 1000, NULL);
    check_timestamp("1969-12-31T23:59:59.900Z", -1, 900000000, NULL);
    check_timestamp("0001-01-01T00:00:00Z", INT64_C(-62135596800), 0, NULL);
    check_timestamp("9999-12-31T23:59:59.999999999Z", INT64_C(253402300799), 999999999, NULL);
    check_timestamp("1970-01-01T01:30:00.5+01:30", 0, 500000000, "1970-01-01T00:00:00.500Z");
    check_timestamp("1969-12-31T23:00:01-01:00", 1, 0, "1970-01-01T00:00:01Z");
}

static void
what_is_no_timestamp_is_refused(void)
{
    static const char *const garbage[] = {
        "",
        "2026-11-15",
        "2026-11-15T19:40:00",
        "2026-11-15 19:40:00Z",
        "2026-11-15t19:40:00z",
        "2026-11-15T19:40:00.Z",
        "2026-11-15T19:40:00.1234567890Z",
        "2026-11-15T19:40:60Z",
        "2026-11-15T19:60:00Z",
        "2026-11-15T24:00:00Z",
        "2026-13-15T19:40:00Z",
        "2026-00-15T19:40:00Z",
        "2026-11-00T19:40:00Z",
        "2026-02-29T19:40:00Z",
        "2026-04-31T19:40:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2026-11-15T19:40:00+24:00",
        "2026-11-15T19:40:00+00:60",
        "2026-11-15T19:40:00+0000",
        "2026-11-15T19:40:00ZZ",
        "+026-11-15T19:40:00Z",
    };
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        int64_t seconds;
        int32_t nanos;
        CHECK(!message_time_parse_timestamp(garbage[i], &seconds, &nanos));
    }
}

static void
check_duration(const char *text, int64_t expected_seconds, int32_t expected_nanos,
               const char *canonical)
{
    int64_t seconds = 0;
    int32_t nanos = 0;
    struct buffer out AUTO(buffer_clear) = {0};
    CHECK(message_time_parse_duration(text, &seconds, &nanos));
    CHECK_NUMBER(seconds, expected_seconds);
    CHECK_NUMBER(nanos, expected_nanos);
    CHECK(message_time_print_duration(seconds, nanos, &out));
    CHECK_TEXT(buffer_text(&out), canonical ? canonical : text);
}

static void
durations_are_seconds(void)
{
    check_duration("0s", 0, 0, NULL);
    check_duration("1.5s", 1, 500000000, "1.500s");
    check_duration("-1.500s", -1, -500000000, NULL);
    check_duration("-0.000000001s", 0, -1, NULL);
    check_duration("0.000010s", 0, 10000, NULL);
    check_duration("315576000000s", INT64_C(315576000000), 0, NULL);
    check_duration("-315576000000s", INT64_C(-315576000000), 0, NULL);
    check_duration("-0s", 0, 0, "0s");
}

static void
what_is_no_duration_is_refused(void)
{
    static const char *const garbage[] = {"",
                                          "1",
                                          "s",
                                          "1.s",
                                          ".5s",
                                          "1.0000000000s",
                                          "-",
                                          "+1s",
                                          "--1s",
                                          "1 s",
                                          "1ms",
                                          "1ss",
                                          "315576000000.1s",
                                          "315576000001s",
                                          "-s",
                                          "1e3s",
                                          "0x1s",
                                          "1000000000000s",
                                          "99999999999999999999s"};
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        int64_t seconds;
        int32_t nanos;
        CHECK(!message_time_parse_duration(garbage[i], &seconds, &nanos));
    }
}

static void
values_out_of_range_are_not_printed(void)
{
    struct buffer out AUTO(buffer_clear) = {0};
    CHECK(!message_time_print_timestamp(INT64_C(-62135596801), 0, &out));
    CHECK(!message_time_print_timestamp(INT64_C(253402300800), 0, &out));
    CHECK(!message_time_print_timestamp(INT64_MIN, 0, &out));
    CHECK(!message_time_print_timestamp(0, -1, &out));
    CHECK(!message_time_print_timestamp(0, 1000000000, &out));
    CHECK(!message_time_print_duration(INT64_C(315576000001), 0, &out));
    CHECK(!message_time_print_duration(INT64_C(315576000000), 1, &out));
    CHECK(!message_time_print_duration(INT64_MIN, 0, &out));
    CHECK(!message_time_print_duration(1, -1, &out));
    CHECK(!message_time_print_duration(-1, 1, &out));
    CHECK(!message_time_print_duration(0, 1000000000, &out));
    CHECK(!message_time_print_duration(0, INT32_MIN, &out));
    CHECK_NUMBER(out.size, 0);
}

int
main(void)
{
    timestamps_are_rfc_3339();
    what_is_no_timestamp_is_refused();
    durations_are_seconds();
    what_is_no_duration_is_refused();
    values_out_of_range_are_not_printed();
    return check_report("message_time");
}
