/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of an engine for metrics: pools, volumes and snapshots by state, operations, and how full
 * single volumes are. Counting reads every row, so a count is valid for a hundred times as long as
 * it took, and 10 seconds at least if nothing has changed: counting takes at most a hundredth of
 * the time however often it is asked for. The same is true of measuring the volumes.
 */
#ifndef VOLUMES_FIGURES_H
#define VOLUMES_FIGURES_H

#include "base/buffer.h"
#include "volumes/engine.h"

#define FIGURES_VOLUME_STATES 10  /* VolumeRecord.State */
#define FIGURES_SNAPSHOT_STATES 4 /* ready, copying, base, replica */
#define FIGURES_MOST_POOLS 4      /* back ends of one engine */

/* One back end. */
struct figures_pool {
    const char *backend; /* its name */
    struct backend_capacity room;
    bool has_room;    /* false: the back end does not answer */
    bool is_writable; /* backend_check */
    struct backend_devices devices;
};

/* How full a volume is. */
struct figures_usage {
    const char *name;
    const char *handle;
    uint64_t used_bytes;
    uint64_t limit_bytes; /* 0: none is enforced */
};

struct figures {
    struct figures_pool pools[FIGURES_MOST_POOLS];
    size_t pool_count;
    uint64_t volumes[FIGURES_VOLUME_STATES];
    uint64_t snapshots[FIGURES_SNAPSHOT_STATES];
    uint64_t provisioned_bytes; /* the sizes of all volumes that are here */
    bool is_counted;            /* false: the rows could not be read */
    struct ops_counts operations[OPS_MOST_KINDS + 1];
    size_t operation_count; /* of kinds of operations */
    uint64_t changes;       /* of volumes and snapshots since the start; not a count of them */
    /* Of single volumes, if they were asked for; in the request's arena */
    bool has_usages;
    struct figures_usage *usages;
    size_t usage_count;
    uint64_t unmeasured; /* volumes that are here and not among the usages */
};

struct figures_request {
    size_t most_usages; /* 0: those of no volume. The same in all requests to an engine */
    struct arena *arena;
};

/* The last count. */
struct figures_cache *figures_cache_new(void);
void figures_cache_free(struct figures_cache *cache);

void figures_get(struct engine *engine, const struct figures_request *request, struct figures *out);

/* Of the first back end, which is the default. NULL: it does not answer. */
const struct backend_capacity *figures_room(const struct figures *figures);

/*
 * In Prometheus' text format: figures_print.c. `figures[i]` are those of the connection `names[i]`.
 */
void figures_print(const char *const *names, const struct figures *figures, size_t count,
                   struct buffer *out);

#endif
