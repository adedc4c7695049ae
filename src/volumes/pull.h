/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies data from another node. The transfer continues where it was after a lost connection and
 * after a restart: the position of what is durable is in the store, in the row transfer/HANDLE.
 */
#ifndef VOLUMES_PULL_H
#define VOLUMES_PULL_H

#include "volumes/engine.h"

/*
 * Makes `to` a copy of the snapshot. While the other node cannot be reached it waits and retries,
 * until it is cancelled. Durable when it returns. The caller deletes the row (pull_row), together
 * with the write that makes the copy valid, or with the row of a copy that has failed.
 */
MUST_CHECK struct error *pull_data(struct engine *engine, const char *snapshot,
                                   const struct data *to, const struct data_settings *settings,
                                   const struct progress *progress);

/* The key of the row, in the arena. */
const char *pull_row(const struct data *to, struct arena *arena);

#endif
