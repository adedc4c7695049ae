/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of snapshots, taken of several volumes at one instant: what was durable in one of them
 * before something was written to another is in the group if that is. All of a group comes and goes
 * in one write.
 */
#ifndef VOLUMES_GROUP_H
#define VOLUMES_GROUP_H

#include "base/text_map.h"
#include "volumes/rows.h"

/* The store takes 128 changes in one write, and each member's note names them all. */
#define GROUP_MOST_MEMBERS 100u

struct group {
    group_record *record;
    snapshot_record **snapshots; /* in the record's order */
    size_t count;
};

/* Whether the back end can make groups at all. */
bool group_is_possible(const struct engine *engine);

/*
 * The same name, sources (in whatever order) and parameters again give the same group; otherwise
 * ALREADY_EXISTS. NOT_FOUND: a source. FAILED_PRECONDITION: they cannot be cut at one instant.
 * ABORTED: somebody works on one of them, or no instant was found; try again.
 */
MUST_CHECK struct error *group_create(struct engine *engine, const char *name,
                                      const char *const *source_handles, size_t count,
                                      const struct text_map *parameters, struct arena *arena,
                                      struct group *out);

MUST_CHECK struct error *group_get(struct engine *engine, const char *handle, struct arena *arena,
                                   struct group *out);

/* Only what the group's own row says. */
MUST_CHECK struct error *group_get_record(struct engine *engine, const char *handle,
                                          struct arena *arena, group_record **out);

/*
 * With its snapshots, as far as they are there. Gone already is success. FAILED_PRECONDITION while
 * something is being copied from one.
 */
MUST_CHECK struct error *group_delete(struct engine *engine, const char *handle);

/* ---- for group_create.c ---- */

/* The snapshots of `group->record`. `may_lack`: those that are not there are passed over. */
MUST_CHECK struct error *group_read_members(struct engine *engine, bool may_lack,
                                            struct arena *arena, struct group *group);

/* The rows of the group and of its snapshots. */
struct row_change *group_rows_of(const struct group *group, struct arena *arena, size_t *count);

#endif
