/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the connections: see connection_metrics.h. */
#include "connections/config/connection_metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

static void
print_family(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

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

static void
print_up(const struct connection_set *set, struct buffer *out)
{
    print_family(out, "skycap_connection_up", "gauge",
                 "Whether the driver behind the connection answers and is ready.");
    for (size_t i = 0; i < set->count; i++)
        if (has_lines(&set->slots[i]))
            buffer_print(out, "skycap_connection_up{connection=\"%s\"} %d\n", set->slots[i].name,
                         is_up(&set->slots[i]));
    print_family(out, "skycap_connection_file_bad", "gauge",
                 "Whether the newest file of the connection is wrong and not in force.");
    for (size_t i = 0; i < set->count; i++)
        if (has_lines(&set->slots[i]))
            buffer_print(out, "skycap_connection_file_bad{connection=\"%s\"} %d\n",
                         set->slots[i].name, set->slots[i].trouble != NULL);
}

static void
print_calls(const struct connection_metrics *metrics, struct buffer *out)
{
    static const struct {
        const char *name;
        const char *help;
        size_t offset;
    } families[] = {
        {"skycap_connection_calls_total", "Calls passed to the driver behind the connection.",
         offsetof(struct connection_counters, calls)},
        {"skycap_connection_failures_total", "Of them, those that ended with an error.",
         offsetof(struct connection_counters, failures)},
        {"skycap_connection_microseconds_total", "Time that they took.",
         offsetof(struct connection_counters, microseconds)},
    };
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        print_family(out, families[i].name, "counter", families[i].help);
        for (struct named_counters *one = metrics->names; one; one = one->next) {
            atomic_uint_fast64_t *value =
                (atomic_uint_fast64_t *)((char *)&one->counters + families[i].offset);
            buffer_print(out, "%s{connection=\"%s\"} %" PRIu64 "\n", families[i].name, one->name,
                         (uint64_t)atomic_load(value));
        }
    }
}

/* Of the connections of this node that have an engine. */
static void
print_figures(const struct connection_set *set, struct buffer *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char **names = arena_alloc(&arena, set->count * sizeof *names);
    struct figures *figures = arena_alloc(&arena, set->count * sizeof *figures);
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct connection *connection = set->slots[i].connection;
        if (!has_lines(&set->slots[i]) || !connection || !connection->driver->ops->figures)
            continue;
        names[count] = set->slots[i].name;
        connection->driver->ops->figures(connection->driver, &figures[count++]);
    }
    figures_print(names, figures, count, out);
}

static void
print_counter(struct buffer *out, const char *name, const char *help, uint64_t value)
{
    print_family(out, name, "counter", help);
    buffer_print(out, "%s %" PRIu64 "\n", name, value);
}

void
connection_metrics_print(struct connection_metrics *metrics, const struct connection_set *set,
                         struct buffer *out)
{
    print_up(set, out);
    print_figures(set, out);
    print_counter(out, "skycap_connection_loads_total",
                  "Times that the connections' directory was read.", atomic_load(&metrics->loads));
    print_counter(out, "skycap_connection_bad_files_total", "Files that were seen to be wrong.",
                  atomic_load(&metrics->bad_files));
    pthread_mutex_lock(&metrics->lock);
    print_calls(metrics, out);
    pthread_mutex_unlock(&metrics->lock);
}
