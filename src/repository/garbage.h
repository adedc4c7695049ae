/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs that are to be deleted. A garbage object names them; a witness object of the same name has
 * the writers that were there after the garbage object was. docs/repository.md has the reasons.
 */
#ifndef REPOSITORY_GARBAGE_H
#define REPOSITORY_GARBAGE_H

#include "repository/id_set.h"
#include "repository/repository_internal.h"

#define GARBAGE_PACKS_MAX 32768u /* in one object */

/* Adds the packs of all garbage objects to the set. `names` (may be NULL): the objects' names. */
MUST_CHECK struct error *garbage_load(struct repository *repository, struct id_set *packs,
                                      struct buffer *names);

/*
 * For prune, before it reads the garbage: deletes what is damaged. Its packs are as all others
 * then; no index names those that were deleted.
 */
MUST_CHECK struct error *garbage_drop_damaged(struct repository *repository);

/* Adds the packs of one garbage object to the set. */
MUST_CHECK struct error *garbage_load_one(struct repository *repository,
                                          const struct object_name *name, struct id_set *packs);

/* Puts garbage objects for a row of packs' names. */
MUST_CHECK struct error *garbage_put(struct repository *repository, const struct buffer *packs);

/*
 * Whether all writers have ended that may use packs of the garbage without knowing that they are.
 * Makes the witness if there is none. `own` is the caller's writer, which does not count.
 */
MUST_CHECK struct error *garbage_is_free(struct repository *repository,
                                         const struct object_name *name,
                                         const struct object_name *own, bool *is_free);

/* Removes the garbage object and its witness; its packs have been deleted or rescued. */
MUST_CHECK struct error *garbage_remove(struct repository *repository,
                                        const struct object_name *name);

#endif
