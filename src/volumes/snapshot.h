/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots. Those of a group come and go with it (group.h). See engine.h for the rules. */
#ifndef VOLUMES_SNAPSHOT_H
#define VOLUMES_SNAPSHOT_H

#include "base/text_map.h"
#include "volumes/rows.h"

/*
 * The same name and source give the same snapshot; another source or other parameters:
 * ALREADY_EXISTS. NOT_FOUND: the source. If the copy takes longer than `wait_ms`, it continues and
 * the snapshot that is returned is COPYING. If it fails within that time, the snapshot is gone and
 * the copy's error is returned.
 */
MUST_CHECK struct error *snapshot_create(struct engine *engine, const char *name,
                                         const char *source_handle,
                                         const struct text_map *parameters, uint64_t wait_ms,
                                         struct arena *arena, snapshot_record **out);

/*
 * Gone already is success. INVALID_ARGUMENT for a member of a group. FAILED_PRECONDITION while a
 * copy of it is being made. Cancels the copy that is making it; ABORTED if that takes long to end.
 */
MUST_CHECK struct error *snapshot_delete(struct engine *engine, const char *handle);

/*
 * A hidden snapshot of the volume for a transfer to another node: its purpose is BASE. The same
 * name gives the same one. `epoch`: of a volume that is MOVING to that node; 0: it is not.
 * Otherwise like snapshot_create.
 */
MUST_CHECK struct error *snapshot_create_base(struct engine *engine, const char *name,
                                              const char *source_handle, const char *peer_node,
                                              uint64_t epoch, uint64_t wait_ms, struct arena *arena,
                                              snapshot_record **out);

/*
 * A snapshot of a volume that is SUPERSEDED and not in use. Does not wait for its copy: it may be
 * COPYING.
 */
MUST_CHECK struct error *snapshot_create_last(struct engine *engine, const char *name,
                                              const char *source_handle, struct arena *arena,
                                              snapshot_record **out);

/* Those that are hidden are NOT_FOUND. */
MUST_CHECK struct error *snapshot_get(struct engine *engine, const char *handle,
                                      struct arena *arena, snapshot_record **out);
/* The same, and complete copies of other nodes' snapshots: replica.h. */
MUST_CHECK struct error *snapshot_get_shown(struct engine *engine, const char *handle,
                                            struct arena *arena, snapshot_record **out);
/* Of any purpose. */
MUST_CHECK struct error *snapshot_get_any(struct engine *engine, const char *handle,
                                          struct arena *arena, snapshot_record **out);

/* A copy of another node's snapshot that users have asked for: replica.h. */
bool snapshot_is_replica(const snapshot_record *snapshot);

/* Users do not see it: it is no snapshot of theirs. */
bool snapshot_is_hidden(const snapshot_record *snapshot);

/* Those of users, sorted by age; only of one source if `source_handle` is not NULL. */
struct snapshot_page {
    snapshot_record **snapshots;
    size_t count;
    const char *next; /* the token of the next page; NULL: this is the last */
};
MUST_CHECK struct error *snapshot_list(struct engine *engine, const char *source_handle,
                                       const char *after, size_t limit, struct arena *arena,
                                       struct snapshot_page *out);

/*
 * The note beside its data. For a member of a group it includes the group, which has no data of its
 * own; otherwise `group` is NULL.
 */
struct data_note snapshot_note(snapshot_record *snapshot, group_record *group, struct arena *arena);

/* A record for a snapshot that is still to be taken, with a new handle. */
snapshot_record *snapshot_make_record(const struct engine *engine, const char *name,
                                      const volume_record *source,
                                      const struct text_map *parameters, struct arena *arena);

struct data snapshot_data(const snapshot_record *snapshot);

/*
 * "instant", or "files" if each file may be of a different moment because the request allowed that.
 */
const char *snapshot_consistency(struct engine *engine, const snapshot_record *snapshot,
                                 struct arena *arena);

#endif
