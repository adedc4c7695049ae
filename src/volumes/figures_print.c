/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of engines in Prometheus' text format: see figures.h. docs/metrics.md lists them. */
#include <inttypes.h>

#include "base/prometheus.h"
#include "volumes/figures.h"

static const char *const volume_states[FIGURES_VOLUME_STATES] = {
    "ready",    "copying", NULL,   "moving",     "receiving",
    "incoming", "left",    "gone", "superseded", "lost"};
static const char *const snapshot_states[FIGURES_SNAPSHOT_STATES] = {"ready", "copying", "base",
                                                                     "replica"};

/* Those of all connections. */
struct all {
    const char *const *names;
    const struct figures *figures;
    size_t count;
};

/* ---- pools ---- */

enum pool_metric { POOL_CAPACITY, POOL_USED, POOL_AVAILABLE, POOL_WRITABLE, POOL_SCRUBBED };

/* False: there is nothing to say of this pool. */
static bool
find_value(const struct figures_pool *pool, enum pool_metric metric, uint64_t *out)
{
    switch (metric) {
    case POOL_CAPACITY:
        *out = pool->room.total_bytes;
        return pool->has_room;
    case POOL_USED:
        *out = pool->room.used_bytes;
        return pool->has_room;
    case POOL_AVAILABLE:
        *out = pool->room.available_bytes;
        return pool->has_room;
    case POOL_WRITABLE:
        *out = pool->is_writable;
        return true;
    default:
        *out = (uint64_t)pool->devices.scrubbed_s;
        return pool->devices.scrubbed_s > 0;
    }
}

static void
print_pool_family(struct buffer *out, const struct all *all, enum pool_metric metric,
                  const char *name, const char *help)
{
    uint64_t value;
    prometheus_print_family(out, name, "gauge", help);
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->figures[i].pool_count; k++)
            if (find_value(&all->figures[i].pools[k], metric, &value))
                buffer_print(out, "%s{connection=\"%s\",backend=\"%s\"} %" PRIu64 "\n", name,
                             all->names[i], all->figures[i].pools[k].backend, value);
}

static void
print_device(struct buffer *out, const char *connection, const char *backend,
             const struct backend_device *device)
{
    const struct {
        const char *kind;
        uint64_t count;
    } errors[] = {{"write", device->write_errors},
                  {"read", device->read_errors},
                  {"flush", device->flush_errors},
                  {"corruption", device->corruption_errors},
                  {"generation", device->generation_errors}};
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        buffer_print(out,
                     "skycap_pool_device_errors_total{connection=\"%s\",backend=\"%s\","
                     "device=\"%" PRIu64 "\",kind=\"%s\"} %" PRIu64 "\n",
                     connection, backend, device->id, errors[i].kind, errors[i].count);
}

static void
print_devices(struct buffer *out, const struct all *all)
{
    prometheus_print_family(out, "skycap_pool_device_errors_total", "counter",
                            "Errors of the devices of btrfs pools, since they were made or reset.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->figures[i].pool_count; k++) {
            const struct figures_pool *pool = &all->figures[i].pools[k];
            for (size_t d = 0; d < pool->devices.count; d++)
                print_device(out, all->names[i], pool->backend, &pool->devices.items[d]);
        }
}

static void
print_pools(struct buffer *out, const struct all *all)
{
    print_pool_family(out, all, POOL_CAPACITY, "skycap_pool_capacity_bytes",
                      "Size of the file system that holds the volumes.");
    print_pool_family(out, all, POOL_USED, "skycap_pool_used_bytes",
                      "Of it, what is allocated, by whatever.");
    print_pool_family(out, all, POOL_AVAILABLE, "skycap_pool_available_bytes",
                      "Of it, what can be written; less than the rest if the disk below is full.");
    print_pool_family(out, all, POOL_WRITABLE, "skycap_pool_writable",
                      "Whether the back end can be used and written to.");
    print_pool_family(out, all, POOL_SCRUBBED, "skycap_pool_scrub_timestamp_seconds",
                      "When the last complete scrub of a btrfs pool began, as btrfs-progs have "
                      "noted it; missing: not known.");
    print_devices(out, all);
}

/* ---- volumes ---- */

static void
print_states(struct buffer *out, const char *family, const char *connection,
             const char *const *states, const uint64_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (states[i])
            buffer_print(out, "%s{connection=\"%s\",state=\"%s\"} %" PRIu64 "\n", family,
                         connection, states[i], counts[i]);
}

static void
print_counts(struct buffer *out, const struct all *all)
{
    prometheus_print_family(out, "skycap_provisioned_bytes", "gauge",
                            "The sizes of all volumes; they may share or not use their bytes.");
    for (size_t i = 0; i < all->count; i++)
        if (all->figures[i].is_counted)
            buffer_print(out, "skycap_provisioned_bytes{connection=\"%s\"} %" PRIu64 "\n",
                         all->names[i], all->figures[i].provisioned_bytes);
    prometheus_print_family(out, "skycap_volumes", "gauge", "Volumes on this node by state.");
    for (size_t i = 0; i < all->count; i++)
        if (all->figures[i].is_counted)
            print_states(out, "skycap_volumes", all->names[i], volume_states,
                         all->figures[i].volumes, FIGURES_VOLUME_STATES);
    prometheus_print_family(out, "skycap_snapshots", "gauge",
                            "Snapshots on this node by state. A base is kept for the next "
                            "transfer, a replica for another node.");
    for (size_t i = 0; i < all->count; i++)
        if (all->figures[i].is_counted)
            print_states(out, "skycap_snapshots", all->names[i], snapshot_states,
                         all->figures[i].snapshots, FIGURES_SNAPSHOT_STATES);
}

static void
print_usage(struct buffer *out, const char *family, const char *connection,
            const struct figures_usage *usage, uint64_t value)
{
    buffer_print(out, "%s{connection=\"%s\",volume=", family, connection);
    prometheus_print_label(out, usage->name);
    buffer_print(out, ",handle=\"%s\"} %" PRIu64 "\n", usage->handle, value);
}

/* Only with --metrics-volumes. */
static void
print_usages(struct buffer *out, const struct all *all)
{
    prometheus_print_family(out, "skycap_volume_used_bytes", "gauge", "Bytes used in the volume.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->figures[i].usage_count; k++)
            print_usage(out, "skycap_volume_used_bytes", all->names[i], &all->figures[i].usages[k],
                        all->figures[i].usages[k].used_bytes);
    prometheus_print_family(out, "skycap_volume_limit_bytes", "gauge",
                            "The size that is enforced; missing: none is.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->figures[i].usage_count; k++)
            if (all->figures[i].usages[k].limit_bytes)
                print_usage(out, "skycap_volume_limit_bytes", all->names[i],
                            &all->figures[i].usages[k], all->figures[i].usages[k].limit_bytes);
    prometheus_print_family(out, "skycap_volumes_unmeasured", "gauge",
                            "Volumes without the two metrics above: they are over the limit of "
                            "--metrics-volumes, or measuring all takes too long.");
    for (size_t i = 0; i < all->count; i++)
        if (all->figures[i].has_usages)
            buffer_print(out, "skycap_volumes_unmeasured{connection=\"%s\"} %" PRIu64 "\n",
                         all->names[i], all->figures[i].unmeasured);
}

/* ---- operations ---- */

static void
print_operation(struct buffer *out, const char *family, const char *connection, const char *kind,
                const char *state, uint64_t count)
{
    buffer_print(out, "%s{connection=\"%s\",kind=\"%s\",state=\"%s\"} %" PRIu64 "\n", family,
                 connection, kind, state, count);
}

static void
print_running(struct buffer *out, const char *connection, const struct ops_counts *counts)
{
    const char *family = "skycap_operations";
    print_operation(out, family, connection, counts->kind, "queued", counts->queued);
    print_operation(out, family, connection, counts->kind, "working", counts->working);
    print_operation(out, family, connection, counts->kind, "waiting", counts->waiting);
    print_operation(out, family, connection, counts->kind, "stalled", counts->stalled);
}

static void
print_ended(struct buffer *out, const char *connection, const struct ops_counts *counts)
{
    const char *family = "skycap_operations_total";
    print_operation(out, family, connection, counts->kind, "succeeded", counts->succeeded);
    print_operation(out, family, connection, counts->kind, "failed", counts->failed);
    print_operation(out, family, connection, counts->kind, "cancelled", counts->cancelled);
}

static void
print_operations(struct buffer *out, const struct all *all)
{
    prometheus_print_family(out, "skycap_operations", "gauge",
                            "Operations in progress. Those that are stalled are working too.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->figures[i].operation_count; k++)
            print_running(out, all->names[i], &all->figures[i].operations[k]);
    prometheus_print_family(out, "skycap_operations_total", "counter",
                            "Operations that have ended.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->figures[i].operation_count; k++)
            print_ended(out, all->names[i], &all->figures[i].operations[k]);
}

void
figures_print(const char *const *names, const struct figures *figures, size_t count,
              struct buffer *out)
{
    struct all all = {names, figures, count};
    bool has_usages = false;
    for (size_t i = 0; i < count; i++)
        has_usages = has_usages || figures[i].has_usages;
    print_pools(out, &all);
    print_counts(out, &all);
    if (has_usages)
        print_usages(out, &all);
    print_operations(out, &all);
}
