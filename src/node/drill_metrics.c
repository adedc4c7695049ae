/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of repositories: exports and drills. See drill.h. */
#include <inttypes.h>

#include "base/prometheus.h"
#include "node/drill.h"
#include "volumes/repository_counts.h"

static const char *const ends[REPOSITORY_ENDS] = {"succeeded", "failed", "cancelled"};

/* What is known of a repository. */
struct known {
    const char *name;
    struct repository_count count;
    int64_t exported_ns;
    int64_t drilled_ns;
};

static void
print_ends(struct buffer *out, const char *family, const struct known *known,
           const uint64_t counts[REPOSITORY_ENDS])
{
    for (size_t i = 0; i < REPOSITORY_ENDS; i++) {
        buffer_print(out, "%s{repository=", family);
        prometheus_print_label(out, known->name);
        buffer_print(out, ",result=\"%s\"} %" PRIu64 "\n", ends[i], counts[i]);
    }
}

static void
print_value(struct buffer *out, const char *family, const struct known *known, double value)
{
    buffer_print(out, "%s{repository=", family);
    prometheus_print_label(out, known->name);
    buffer_print(out, "} %.15g\n", value);
}

static double
seconds_of(int64_t ns)
{
    int64_t seconds = ns / 1000000000;
    return (double)seconds;
}

static void
print_exports(struct buffer *out, const struct known *all, size_t count)
{
    prometheus_print_family(out, "skycap_exports_total", "counter",
                            "Exports of snapshots to the repository that have ended.");
    for (size_t i = 0; i < count; i++)
        print_ends(out, "skycap_exports_total", &all[i], all[i].count.exports);
    prometheus_print_family(out, "skycap_export_read_bytes_total", "counter",
                            "Bytes of snapshots that successful exports have read.");
    for (size_t i = 0; i < count; i++)
        print_value(out, "skycap_export_read_bytes_total", &all[i],
                    (double)all[i].count.read_bytes);
    prometheus_print_family(out, "skycap_export_stored_bytes_total", "counter",
                            "Bytes that they have added to the repository.");
    for (size_t i = 0; i < count; i++)
        print_value(out, "skycap_export_stored_bytes_total", &all[i],
                    (double)all[i].count.stored_bytes);
    prometheus_print_family(out, "skycap_export_last_success_timestamp_seconds", "gauge",
                            "When an export to the repository succeeded last; 0: never.");
    for (size_t i = 0; i < count; i++)
        print_value(out, "skycap_export_last_success_timestamp_seconds", &all[i],
                    seconds_of(all[i].exported_ns));
}

static void
print_drills(struct buffer *out, const struct known *all, size_t count)
{
    prometheus_print_family(out, "skycap_drills_total", "counter",
                            "Restore drills of the repository that have ended.");
    for (size_t i = 0; i < count; i++)
        print_ends(out, "skycap_drills_total", &all[i], all[i].count.drills);
    prometheus_print_family(out, "skycap_drill_seconds_total", "counter",
                            "Time that those took that have succeeded.");
    for (size_t i = 0; i < count; i++)
        print_value(out, "skycap_drill_seconds_total", &all[i],
                    (double)all[i].count.drill_ms / 1e3);
    prometheus_print_family(out, "skycap_drill_last_success_timestamp_seconds", "gauge",
                            "When a restore drill succeeded last; 0: never.");
    for (size_t i = 0; i < count; i++)
        print_value(out, "skycap_drill_last_success_timestamp_seconds", &all[i],
                    seconds_of(all[i].drilled_ns));
}

void
drill_print_metrics(struct engine *engine, struct buffer *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_list names = {0};
    if (!engine->repositories)
        return;
    error_free(repository_pool_list(engine, &arena, &names));
    struct known *all = arena_alloc(&arena, names.count * sizeof *all);
    for (size_t i = 0; i < names.count; i++) {
        all[i].name = names.items[i];
        all[i].count = repository_counts_get(engine->repository_counts, names.items[i]);
        error_free(
            repository_counts_last_export(engine->store, names.items[i], &all[i].exported_ns));
        error_free(drill_last_success(engine, names.items[i], &all[i].drilled_ns));
    }
    print_exports(out, all, names.count);
    print_drills(out, all, names.count);
}
