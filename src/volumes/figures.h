/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of an engine for metrics: room, volumes and snapshots by state, operations. Counting
 * reads every row, so a count is valid for a hundred times as long as it took, and 10 seconds at
 * least if nothing has changed: counting takes at most a hundredth of the time however often it is
 * asked for.
 */
#ifndef VOLUMES_FIGURES_H
#define VOLUMES_FIGURES_H

#include "base/buffer.h"
#include "volumes/engine.h"

#define FIGURES_VOLUME_STATES 8   /* VolumeRecord.State */
#define FIGURES_SNAPSHOT_STATES 4 /* ready, copying, base, replica */

struct figures {
    struct backend_capacity room;
    bool has_room; /* false: the back end does not answer */
    uint64_t volumes[FIGURES_VOLUME_STATES];
    uint64_t snapshots[FIGURES_SNAPSHOT_STATES];
    uint64_t provisioned_bytes; /* the sizes of all volumes that are here */
    bool is_counted;            /* false: the rows could not be read */
    struct ops_counts operations;
    uint64_t changes; /* of volumes and snapshots since the start; not a count of them */
};

/* The last count. */
struct figures_cache *figures_cache_new(void);
void figures_cache_free(struct figures_cache *cache);

void figures_get(struct engine *engine, struct figures *out);

/* In Prometheus' text format. `figures[i]` are those of the connection `names[i]`. */
void figures_print(const char *const *names, const struct figures *figures, size_t count,
                   struct buffer *out);

#endif
