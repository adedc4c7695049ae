/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/prometheus.c */
#include "base/prometheus.h"

#include "check.h"

static void
expect_label(const char *value, const char *expected)
{
    struct buffer out AUTO(buffer_clear) = {0};
    prometheus_print_label(&out, value);
    CHECK_TEXT(buffer_text(&out), expected);
}

static void
labels_are_escaped(void)
{
    expect_label("", "\"\"");
    expect_label("plain", "\"plain\"");
    expect_label("a\"b\\c\nd", "\"a\\\"b\\\\c\\nd\"");
    expect_label("\xc3\xa4", "\"\xc3\xa4\"");
}

static void
what_is_not_utf8_does_not_reach_the_page(void)
{
    expect_label("a\xff"
                 "b",
                 "\"a?b\"");
    expect_label("cut \xc3", "\"cut ?\"");
}

static void
buckets_are_cumulative_and_hold_their_limit(void)
{
    static const uint64_t limits_ms[] = {500, 2000, 0};
    struct prometheus_histogram histogram = {.limits_ms = limits_ms};
    struct buffer out AUTO(buffer_clear) = {0};
    prometheus_count_time(&histogram, 500);
    prometheus_count_time(&histogram, 501);
    prometheus_count_time(&histogram, 9000);
    prometheus_print_histogram(&out, "x_seconds", "Text.", &histogram);
    CHECK_TEXT(buffer_text(&out), "# HELP x_seconds Text.\n# TYPE x_seconds histogram\n"
                                  "x_seconds_bucket{le=\"0.5\"} 1\n"
                                  "x_seconds_bucket{le=\"2\"} 2\n"
                                  "x_seconds_bucket{le=\"+Inf\"} 3\n"
                                  "x_seconds_sum 10.001\nx_seconds_count 3\n");
}

int
main(void)
{
    labels_are_escaped();
    what_is_not_utf8_does_not_reach_the_page();
    buckets_are_cumulative_and_hold_their_limit();
    return check_report("test_prometheus");
}
