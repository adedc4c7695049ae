/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots. Those of a group come and go with it (group.h). See engine.h for the rules. */
#ifndef VOLUMES_SNAPSHOT_H
#define VOLUMES_SNAPSHOT_H

#include "base/text_map.h"
#include "volumes/rows.h"

/*
 * The same name and source again give the same snapshot; another source or other parameters:
 * ALREADY_EXISTS. NOT_FOUND: the source. A copy that takes longer than `wait_ms` goes on, and the
 * snapshot that comes back is COPYING; if it fails within that time the snapshot is gone, and this
 * is the error.
 */
MUST_CHECK struct error *snapshot_create(struct engine *engine, const char *name,
                                         const char *source_handle,
                                         const struct text_map *parameters, uint64_t wait_ms,
                                         struct arena *arena, snapshot_record **out);

/*
 * Gone already is success. INVALID_ARGUMENT for one that belongs to a group. FAILED_PRECONDITION
 * while something is being copied from it. A copy under way is cancelled; ABORTED if it takes long
 * to wind down.
 */
MUST_CHECK struct error *snapshot_delete(struct engine *engine, const char *handle);

MUST_CHECK struct error *snapshot_get(struct engine *engine, const char *handle,
                                      struct arena *arena, snapshot_record **out);

/* By age; of one source if `source_handle` is not NULL. */
struct snapshot_page {
    snapshot_record **snapshots;
    size_t count;
    const char *next; /* where to go on; NULL: that was all */
};
MUST_CHECK struct error *snapshot_list(struct engine *engine, const char *source_handle,
                                       const char *after, size_t limit, struct arena *arena,
                                       struct snapshot_page *out);

/*
 * What stands beside its data. Of a group's member it has the group too, which has no data of its
 * own; else `group` is NULL.
 */
struct data_note snapshot_note(snapshot_record *snapshot, group_record *group, struct arena *arena);

/* A record of a snapshot that is yet to be taken, with a handle of its own. */
snapshot_record *snapshot_make_record(const struct engine *engine, const char *name,
                                      const volume_record *source,
                                      const struct text_map *parameters, struct arena *arena);

struct data snapshot_data(const snapshot_record *snapshot);

/*
 * "instant", or "files" where each file may be as it was at a moment of its own, because that was
 * asked for.
 */
const char *snapshot_consistency(struct engine *engine, const snapshot_record *snapshot,
                                 struct arena *arena);

#endif
