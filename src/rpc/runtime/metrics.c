/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, and their Prometheus text format: see metrics.h. */
#include "rpc/runtime/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/prometheus.h"

static const struct {
    uint64_t nanoseconds;
    const char *label;
} limits[METRICS_BUCKETS] = {
    {25000, "0.000025"}, {50000, "0.00005"},   {100000, "0.0001"},  {250000, "0.00025"},
    {500000, "0.0005"},  {1000000, "0.001"},   {2500000, "0.0025"}, {5000000, "0.005"},
    {10000000, "0.01"},  {50000000, "0.05"},   {250000000, "0.25"}, {1000000000, "1"},
    {5000000000u, "5"},  {30000000000u, "30"},
};

struct method_metrics *
metrics_method(struct metrics *metrics, const char *path)
{
    struct method_metrics **place = &metrics->methods;
    while (*place && strcmp((*place)->path, path) != 0)
        place = &(*place)->next;
    if (!*place) {
        *place = memory_zeroed(sizeof **place);
        (*place)->path = memory_string(path);
    }
    return *place;
}

void
metrics_count_call(struct method_metrics *method, enum code code, uint64_t nanoseconds)
{
    size_t bucket = 0;
    while (bucket < METRICS_BUCKETS && nanoseconds > limits[bucket].nanoseconds)
        bucket++;
    method->codes[code]++;
    method->buckets[code][bucket]++;
    method->nanoseconds[code] += nanoseconds;
}

uint64_t
metrics_quantile(const struct method_metrics *method, double share)
{
    uint64_t sums[METRICS_BUCKETS + 1] = {0}, all = 0, below = 0;
    for (int code = 0; code < CODE_COUNT; code++)
        for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
            sums[i] += method->buckets[code][i];
            all += method->buckets[code][i];
        }
    double rank = share * (double)all;
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        double start = i ? (double)limits[i - 1].nanoseconds : 0;
        if (sums[i] && (double)(below + sums[i]) >= rank)
            return (uint64_t)(start + ((double)limits[i].nanoseconds - start) *
                                          (rank - (double)below) / (double)sums[i]);
        below += sums[i];
    }
    return all ? limits[METRICS_BUCKETS - 1].nanoseconds : 0;
}

static void
print_histogram(const struct method_metrics *method, enum code code, struct buffer *out)
{
    const char *name = error_code_name(code);
    uint64_t sum = 0;
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        sum += method->buckets[code][i];
        buffer_print(out,
                     "skycap_rpc_duration_seconds_bucket{method=\"%s\",code=\"%s\",le=\"%s\"} "
                     "%" PRIu64 "\n",
                     method->path, name, limits[i].label, sum);
    }
    buffer_print(
        out,
        "skycap_rpc_duration_seconds_bucket{method=\"%s\",code=\"%s\",le=\"+Inf\"} %" PRIu64
        "\nskycap_rpc_duration_seconds_sum{method=\"%s\",code=\"%s\"} %.9f\n"
        "skycap_rpc_duration_seconds_count{method=\"%s\",code=\"%s\"} %" PRIu64 "\n",
        method->path, name, method->codes[code], method->path, name,
        (double)method->nanoseconds[code] / 1e9, method->path, name, method->codes[code]);
}

static void
print_calls(const struct metrics *metrics, struct buffer *out)
{
    prometheus_print_family(out, "skycap_rpc_calls_total", "counter",
                            "Calls answered, by method and gRPC code.");
    for (const struct method_metrics *m = metrics->methods; m; m = m->next)
        for (int code = 0; code < CODE_COUNT; code++)
            if (m->codes[code])
                buffer_print(out, "skycap_rpc_calls_total{method=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                             m->path, error_code_name((enum code)code), m->codes[code]);
    prometheus_print_family(out, "skycap_rpc_in_flight", "gauge", "Calls in progress.");
    for (const struct method_metrics *m = metrics->methods; m; m = m->next)
        buffer_print(out, "skycap_rpc_in_flight{method=\"%s\"} %" PRIu64 "\n", m->path,
                     m->in_flight);
    prometheus_print_family(out, "skycap_rpc_duration_seconds", "histogram",
                            "Time from a call's header to its status.");
    for (const struct method_metrics *m = metrics->methods; m; m = m->next)
        for (int code = 0; code < CODE_COUNT; code++)
            if (m->codes[code])
                print_histogram(m, (enum code)code, out);
}

void
metrics_print(const struct metrics *metrics, struct buffer *out)
{
    print_calls(metrics, out);
    prometheus_print_number(out, "skycap_rpc_received_bytes_total", "counter",
                            "Bytes from clients.", metrics->server_bytes.bytes_in);
    prometheus_print_number(out, "skycap_rpc_sent_bytes_total", "counter", "Bytes to clients.",
                            metrics->server_bytes.bytes_out);
    prometheus_print_number(out, "skycap_rpc_client_received_bytes_total", "counter",
                            "Bytes from servers that we call.", metrics->client_bytes.bytes_in);
    prometheus_print_number(out, "skycap_rpc_client_sent_bytes_total", "counter",
                            "Bytes to servers that we call.", metrics->client_bytes.bytes_out);
    prometheus_print_number(out, "skycap_rpc_connections", "gauge", "Open connections of clients.",
                            metrics->server_connections);
    prometheus_print_number(out, "skycap_rpc_connections_total", "counter", "Connections accepted.",
                            metrics->server_connections_total);
    prometheus_print_number(out, "skycap_rpc_connections_refused_total", "counter",
                            "Connections over the limit.", metrics->refused_connections_total);
    prometheus_print_number(out, "skycap_rpc_client_connections", "gauge",
                            "Open connections to servers.", metrics->client_connections);
    prometheus_print_number(out, "skycap_rpc_client_connections_total", "counter",
                            "Connections made.", metrics->client_connections_total);
}

void
metrics_clear(struct metrics *metrics)
{
    while (metrics->methods) {
        struct method_metrics *next = metrics->methods->next;
        free(metrics->methods->path);
        free(metrics->methods);
        metrics->methods = next;
    }
}
