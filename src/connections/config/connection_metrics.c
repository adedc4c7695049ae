/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the connections: see connection_metrics.h. */
#include "connections/config/connection_metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/prometheus.h"
#include "volumes/figures.h"

struct named_counters {
    struct named_counters *next;
    struct connection_counters counters;
    char name[];
};

void
connection_metrics_init(struct connection_metrics *metrics)
{
    pthread_mutex_init(&metrics->lock, NULL);
}

void
connection_metrics_clear(struct connection_metrics *metrics)
{
    struct named_counters *next;
    for (struct named_counters *one = metrics->names; one; one = next) {
        next = one->next;
        free(one);
    }
    pthread_mutex_destroy(&metrics->lock);
}

static struct named_counters *
add_name(struct connection_metrics *metrics, const char *name)
{
    struct named_counters *one = memory_zeroed(sizeof *one + strlen(name) + 1);
    memcpy(one->name, name, strlen(name) + 1);
    one->next = metrics->names;
    metrics->names = one;
    return one;
}

struct connection_counters *
connection_metrics_counters(struct connection_metrics *metrics, const char *name)
{
    pthread_mutex_lock(&metrics->lock);
    struct named_counters *one = metrics->names;
    while (one && strcmp(one->name, name) != 0)
        one = one->next;
    if (!one)
        one = add_name(metrics, name);
    pthread_mutex_unlock(&metrics->lock);
    return &one->counters;
}

/* ---- printing ---- */

/* A file without a valid name has no line: its name may hold anything, or occur twice. */
static bool
has_lines(const struct connection_slot *slot)
{
    return spec_is_name(slot->name);
}

static bool
is_up(const struct connection_slot *slot)
{
    if (!slot->connection)
        return false;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(slot->connection->driver);
    return facts->is_ready;
}

/* In Unix time; 0: not known. */
static uint64_t
since_ms(const struct connection_slot *slot)
{
    if (!slot->connection)
        return 0;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(slot->connection->driver);
    return facts->since_ms ? facts->since_ms : slot->connection->loaded_ms;
}

static void
print_up(const struct connection_set *set, struct buffer *out)
{
    prometheus_print_family(out, "skycap_connection_up", "gauge",
                            "Whether the driver behind the connection answers and is ready.");
    for (size_t i = 0; i < set->count; i++)
        if (has_lines(&set->slots[i]))
            buffer_print(out, "skycap_connection_up{connection=\"%s\"} %d\n", set->slots[i].name,
                         is_up(&set->slots[i]));
    prometheus_print_family(out, "skycap_connection_up_since_timestamp_seconds", "gauge",
                            "When skycap_connection_up became what it is, in Unix time.");
    for (size_t i = 0; i < set->count; i++)
        if (has_lines(&set->slots[i]) && since_ms(&set->slots[i]))
            buffer_print(out,
                         "skycap_connection_up_since_timestamp_seconds{connection=\"%s\"} %.3f\n",
                         set->slots[i].name, (double)since_ms(&set->slots[i]) / 1e3);
    prometheus_print_family(out, "skycap_connection_file_bad", "gauge",
                            "Whether the newest file of the connection is wrong and not in force.");
    for (size_t i = 0; i < set->count; i++)
        if (has_lines(&set->slots[i]))
            buffer_print(out, "skycap_connection_file_bad{connection=\"%s\"} %d\n",
                         set->slots[i].name, set->slots[i].trouble != NULL);
}

static void
print_counters(const struct connection_metrics *metrics, const char *name, const char *help,
               size_t offset, struct buffer *out)
{
    prometheus_print_family(out, name, "counter", help);
    for (struct named_counters *one = metrics->names; one; one = one->next) {
        atomic_uint_fast64_t *value = (atomic_uint_fast64_t *)((char *)&one->counters + offset);
        buffer_print(out, "%s{connection=\"%s\"} %" PRIu64 "\n", name, one->name,
                     (uint64_t)atomic_load(value));
    }
}

/* With the lock held. */
static void
print_calls(const struct connection_metrics *metrics, struct buffer *out)
{
    print_counters(metrics, "skycap_connection_calls_total",
                   "Calls passed to the driver behind the connection.",
                   offsetof(struct connection_counters, calls), out);
    print_counters(metrics, "skycap_connection_failures_total",
                   "Of them, those that ended with an error.",
                   offsetof(struct connection_counters, failures), out);
    prometheus_print_family(out, "skycap_connection_call_seconds_total", "counter",
                            "Time that they took.");
    for (struct named_counters *one = metrics->names; one; one = one->next)
        buffer_print(out, "skycap_connection_call_seconds_total{connection=\"%s\"} %.6f\n",
                     one->name, (double)atomic_load(&one->counters.microseconds) / 1e6);
}

/* Of the connections of this node that have an engine. */
static void
print_figures(const struct connection_set *set, const struct connection_metrics_request *asked,
              struct buffer *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct figures_request request = {asked->most_usages, &arena};
    const char **names = arena_alloc(&arena, (set->count + 1) * sizeof *names);
    struct figures *figures = arena_alloc(&arena, (set->count + 1) * sizeof *figures);
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct connection *connection = set->slots[i].connection;
        if (!has_lines(&set->slots[i]) || !connection || !connection->driver->ops->figures)
            continue;
        names[count] = set->slots[i].name;
        connection->driver->ops->figures(connection->driver, &request, &figures[count++]);
    }
    names[count] = "";
    figures[count] = (struct figures){0};
    figures[count].operation_count = ops_count(asked->own, figures[count].operations);
    figures_print(names, figures, count + 1, out);
}

void
connection_metrics_print(struct connection_metrics *metrics, const struct connection_set *set,
                         const struct connection_metrics_request *request, struct buffer *out)
{
    print_up(set, out);
    print_figures(set, request, out);
    prometheus_print_number(out, "skycap_connection_loads_total", "counter",
                            "Times that the connections' directory was read.",
                            atomic_load(&metrics->loads));
    prometheus_print_number(out, "skycap_connection_bad_files_total", "counter",
                            "Files that were seen to be wrong.", atomic_load(&metrics->bad_files));
    pthread_mutex_lock(&metrics->lock);
    print_calls(metrics, out);
    pthread_mutex_unlock(&metrics->lock);
}
