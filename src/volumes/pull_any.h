/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a snapshot from whichever node has it: when the one that sends it has fallen silent,
 * another that has a copy is asked.
 */
#ifndef VOLUMES_PULL_ANY_H
#define VOLUMES_PULL_ANY_H

#include "volumes/pull.h"

/*
 * As pull_data, whose patience it sets. Waits until some node that has the snapshot answers, or it
 * is cancelled. `*node_id` is the node that has sent it, or its last part; in the arena. From
 * another node than before the transfer begins anew.
 */
MUST_CHECK struct error *pull_any(struct engine *engine, const struct pull_request *request,
                                  const struct progress *progress, struct arena *arena,
                                  const char **node_id);

#endif
