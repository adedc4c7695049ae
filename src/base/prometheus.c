/* SPDX-License-Identifier: Apache-2.0 */
/* The text format of Prometheus: see prometheus.h. */
#include "base/prometheus.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

void
prometheus_print_family(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void
prometheus_print_label(struct buffer *out, const char *value)
{
    size_t left = strlen(value);
    uint32_t code_point;
    buffer_append_byte(out, '"');
    for (const char *at = value; left;) {
        size_t size = utf8_decode(at, left, &code_point);
        if (*at == '\n')
            buffer_append_text(out, "\\n");
        else if (*at == '"' || *at == '\\')
            buffer_print(out, "\\%c", *at);
        else if (!size)
            buffer_append_byte(out, '?');
        else
            buffer_append(out, at, size);
        at += size ? size : 1;
        left -= size ? size : 1;
    }
    buffer_append_byte(out, '"');
}

void
prometheus_print_number(struct buffer *out, const char *name, const char *type, const char *help,
                        uint64_t value)
{
    prometheus_print_family(out, name, type, help);
    buffer_print(out, "%s %" PRIu64 "\n", name, value);
}

/* ---- histograms ---- */

void
prometheus_count_time(struct prometheus_histogram *histogram, uint64_t ms)
{
    size_t at = 0;
    while (at < PROMETHEUS_MOST_BUCKETS && histogram->limits_ms[at] &&
           ms > histogram->limits_ms[at])
        at++;
    atomic_fetch_add_explicit(&histogram->buckets[at], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ms, ms, memory_order_relaxed);
}

void
prometheus_print_histogram(struct buffer *out, const char *name, const char *help,
                           const struct prometheus_histogram *histogram)
{
    unsigned long long count = 0;
    prometheus_print_family(out, name, "histogram", help);
    for (size_t i = 0; i <= PROMETHEUS_MOST_BUCKETS; i++) {
        uint64_t limit_ms = i < PROMETHEUS_MOST_BUCKETS ? histogram->limits_ms[i] : 0;
        count += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
        if (!limit_ms)
            break;
        buffer_print(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)limit_ms / 1e3, count);
    }
    buffer_print(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.3f\n%s_count %llu\n", name, count,
                 name, (double)atomic_load_explicit(&histogram->sum_ms, memory_order_relaxed) / 1e3,
                 name, count);
}
