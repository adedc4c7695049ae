/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a snapshot that a plugin makes, with a progress bar on a terminal. */
#ifndef CLI_VELERO_HOST_WAIT_H
#define CLI_VELERO_HOST_WAIT_H

#include "cli/velero_host.h"
#include "proto/skycap.pb-c.h"

/*
 * Waits until the snapshot is complete; the error says how it failed, or that it was cancelled. The
 * first signal to end cancels it. It is an operation of the client's server meanwhile, if there is
 * one; `is_named`: the user has named the server, and is told if it does not answer. `what` is the
 * operation's description.
 */
MUST_CHECK struct error *velero_host_wait(struct velero_host *host, const char *snapshot,
                                          const char *what, bool is_named);

/* Waits in the same way, for a snapshot that somebody else has begun; a signal ends the waiting. */
MUST_CHECK struct error *velero_host_watch(struct velero_host *host, const char *snapshot);

/* The progress as an operation, for cli/progress.h; texts without control characters. */
Skycap__V1__Operation *velero_host_operation(const char *snapshot,
                                             const Generated__OperationProgress *progress,
                                             struct arena *arena);

#endif
