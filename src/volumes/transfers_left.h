/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots that were taken for transfers to other nodes, and never closed: the answer to Open or
 * the call of Close got lost, or the other node was killed in between. The node that has such a
 * snapshot asks the other one whether it still needs it.
 */
#ifndef VOLUMES_TRANSFERS_LEFT_H
#define VOLUMES_TRANSFERS_LEFT_H

#include "volumes/remote_data.h"

/*
 * At the node that fetches: what it has to do with a snapshot of another node. It has opened it
 * more than TRANSFERS_LEFT_AGE_MS ago, or never will.
 */
MUST_CHECK struct error *transfers_left_find_use(struct engine *engine, const char *snapshot,
                                                 const char *transfer_id, struct remote_use *out);

/* Opening takes less; until it has ended, nobody knows the snapshot. */
#define TRANSFERS_LEFT_AGE_MS 90000

/*
 * At the node that has them: deletes those that nobody needs, or keeps them as bases if the other
 * node has them. Those of nodes that do not answer stay until the next time. May take some seconds.
 */
void transfers_left_reconcile(struct engine *engine);

#endif
