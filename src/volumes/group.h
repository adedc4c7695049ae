/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of snapshots, taken of several volumes at one instant. If a group contains a write to one
 * volume, it also contains everything that was durable in the others before that write. A group
 * appears and disappears in one write.
 */
#ifndef VOLUMES_GROUP_H
#define VOLUMES_GROUP_H

#include "base/text_map.h"
#include "volumes/rows.h"

/* The store takes 128 changes in one write, and each member's note lists all members. */
#define GROUP_MOST_MEMBERS 100u

struct group {
    group_record *record;
    snapshot_record **snapshots; /* in the record's order */
    size_t count;
};

/* Whether the back end can make groups at all. */
bool group_is_possible(const struct engine *engine);

/*
 * The same name, sources (in any order) and parameters give the same group; otherwise
 * ALREADY_EXISTS. NOT_FOUND: a source. FAILED_PRECONDITION: they cannot be taken at one instant.
 * ABORTED: another request works on one of them, or no common instant was found; try again.
 */
MUST_CHECK struct error *group_create(struct engine *engine, const char *name,
                                      const char *const *source_handles, size_t count,
                                      const struct text_map *parameters, struct arena *arena,
                                      struct group *out);

MUST_CHECK struct error *group_get(struct engine *engine, const char *handle, struct arena *arena,
                                   struct group *out);

/* Only the group's own row. */
MUST_CHECK struct error *group_get_record(struct engine *engine, const char *handle,
                                          struct arena *arena, group_record **out);

/*
 * Deletes its snapshots too, as far as they exist. Gone already is success. FAILED_PRECONDITION
 * while a copy of one is being made.
 */
MUST_CHECK struct error *group_delete(struct engine *engine, const char *handle);

/* ---- for group_create.c ---- */

/* The snapshots of `group->record`. `may_lack`: skips those that are missing. */
MUST_CHECK struct error *group_read_members(struct engine *engine, bool may_lack,
                                            struct arena *arena, struct group *group);

/* The rows of the group and of its snapshots. */
struct row_change *group_rows_of(const struct group *group, struct arena *arena, size_t *count);

#endif
