/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a move fetches the volume: used by move_work.c only. */
#ifndef VOLUMES_MOVE_FETCH_H
#define VOLUMES_MOVE_FETCH_H

#include "volumes/move_cluster.h"
#include "volumes/remote_data.h"
#include "volumes/rows.h"

#define MOVE_FIRST_PAUSE_MS 50u
#define MOVE_PAUSE_STEP_MS 50u

struct move_work {
    struct engine *engine;
    uint64_t started_ms; /* in this process */
    const struct move_cluster *cluster;
    const struct remote_data *remote;
    const struct progress *progress;
    struct arena arena; /* of the record */
    char handle[BACKEND_HANDLE_SIZE];
    volume_record *record; /* as it is in the store */
    const char *key;       /* of the volume: move_keys.h */
    uint64_t fetched;      /* bytes of the first transfer */
    uint64_t expected;
    const char *first; /* snapshots at the source that are not needed after the end; or NULL */
    const char *last;
    uint64_t copied_ms;           /* when `first` was taken, or a newer one could not be */
    uint64_t pause_ms;            /* after which the volume is copied again while it is in use */
    snapshot_record *last_record; /* of the last one, if it can be a base of later moves; or NULL */
    bool is_base_kept;            /* it is one, on this node */
    uint64_t begun_epoch;         /* at which the source is MOVING; 0: not that this node knows */
};

bool move_fetch_is_cancelled(const struct move_work *work);
MUST_CHECK struct error *move_fetch_cancelled(void);

/* The other node, or the registry, may be back soon, or not be busy any more. */
bool move_fetch_is_worth_waiting(const struct error *error);

/* Pauses; doubles the pause for the next time. */
void move_fetch_rest(const struct move_work *work, unsigned *pause_ms);

/*
 * Copies the volume, begins the move at the source, and copies what has changed since. The row is
 * RECEIVING before and after that. ABORTED: the source has given the move up. Any other error after
 * the begin: this node gives it up.
 */
MUST_CHECK struct error *move_fetch(struct move_work *work);

#endif
