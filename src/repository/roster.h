/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which writers are open in this process. The name of a writer's object ends in bytes that tell
 * which roster it is from: an object from this roster whose writer is not in it was left behind,
 * for example because the server of the repository did not answer when the writer ended. These
 * bytes are kept in a file, so that what a process left behind is known to the next one, too. Safe
 * from any thread. A roster that is NULL knows nothing.
 */
#ifndef REPOSITORY_ROSTER_H
#define REPOSITORY_ROSTER_H

#include "repository/objects.h"

/* Makes a name for a writer, which is open from now on. */
MUST_CHECK struct error *roster_enter(struct repository_roster *roster, struct object_name *name);
/* Before its object is deleted. It may have left before. */
void roster_leave(struct repository_roster *roster, const struct object_name *name);

/* Whether the name was made here, and its writer has left. */
bool roster_has_left(struct repository_roster *roster, const struct object_name *name);

#endif
