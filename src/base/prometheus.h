/* SPDX-License-Identifier: Apache-2.0 */
/* The text format of Prometheus: families, label values and histograms. */
#ifndef BASE_PROMETHEUS_H
#define BASE_PROMETHEUS_H

#include <stdatomic.h>

#include "base/buffer.h"

/* The lines HELP and TYPE, before the samples. `type`: "counter", "gauge", "histogram". */
void prometheus_print_family(struct buffer *out, const char *name, const char *type,
                             const char *help);

/* A label's value in quotes. What is not UTF-8 becomes a question mark. */
void prometheus_print_label(struct buffer *out, const char *value);

/* A family with one sample that has no labels. */
void prometheus_print_number(struct buffer *out, const char *name, const char *type,
                             const char *help, uint64_t value);

/* ---- histograms ---- */

#define PROMETHEUS_MOST_BUCKETS 16

/* Counts times. All zero but the limits, which are ascending and end with 0. Any thread. */
struct prometheus_histogram {
    const uint64_t *limits_ms;
    atomic_ullong buckets[PROMETHEUS_MOST_BUCKETS + 1]; /* the last one: above all limits */
    atomic_ullong sum_ms;
};

void prometheus_count_time(struct prometheus_histogram *histogram, uint64_t ms);

/* The whole family, in seconds. */
void prometheus_print_histogram(struct buffer *out, const char *name, const char *help,
                                const struct prometheus_histogram *histogram);

#endif
