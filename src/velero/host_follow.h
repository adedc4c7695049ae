/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a snapshot that a plugin is still making. */
#ifndef VELERO_HOST_FOLLOW_H
#define VELERO_HOST_FOLLOW_H

#include "velero/host_snapshotter.h"

struct host_follow {
    uint64_t end_ms;  /* on the monotonic clock; 0: no limit */
    uint32_t poll_ms; /* between two questions */
    /* Called with each progress, and about every 100 ms with NULL. May be NULL. */
    void (*look)(void *context, const Generated__OperationProgress *progress);
    /* Whether the snapshot is to be cancelled. May be NULL. */
    bool (*is_cancelled)(void *context);
    /* Whether to stop waiting, and leave the snapshot alone. May be NULL. */
    bool (*is_stopped)(void *context);
    void *context;
};

/*
 * Asks for the progress until the snapshot is complete. Once `is_cancelled` says so, the plugin is
 * asked to cancel, and the progress tells what came of it. A plugin that crashes meanwhile is
 * started again and asked again; the error is the last one when that fails ten times in a row.
 *
 * NULL: the snapshot is complete, also if it was to be cancelled. CANCELLED: the plugin has
 * cancelled it. DEADLINE_EXCEEDED: the time has passed, or the waiting was stopped; the plugin may
 * go on. Other errors: it has failed.
 */
MUST_CHECK struct error *host_follow_snapshot(struct host_snapshotter *snapshotter,
                                              const char *snapshot,
                                              const struct host_follow *follow);

#endif
