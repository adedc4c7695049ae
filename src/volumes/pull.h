/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies data from another node. The transfer continues where it was after a lost connection and
 * after a restart: the position of what is durable is in the store, in the row transfer/HANDLE,
 * with the snapshot and the base that it belongs to.
 */
#ifndef VOLUMES_PULL_H
#define VOLUMES_PULL_H

#include "volumes/engine.h"

enum pull_start {
    PULL_NEW,  /* `to` is made anew: empty, or a copy of the local snapshot `base` */
    PULL_ONTO, /* `to` exists with exactly the contents of `base`, or this pull has begun before */
};

struct pull_request {
    const char *node_id;  /* the node that has the snapshot; "": the one in its handle */
    const char *snapshot; /* the handle of what is fetched */
    const char *base;     /* "": everything is sent. A snapshot whose contents the target has */
    enum pull_start start;
    const struct data *to;
    const struct data_settings *settings;
    bool is_spread;            /* the other node serves few of these at a time: stream_slots.h */
    uint64_t bytes_per_second; /* 0: no limit */
    uint32_t patience_ms; /* how long it waits for the other node without progress; 0: forever */
    bool *is_impatient;   /* set if it ends because of that; may be NULL */
    /*
     * Called when `to` has exactly the contents and the size of the snapshot, durably; before an
     * image grows to the size in the settings. NULL: nothing.
     */
    void (*arrived)(void *context);
    void *context;
};

/*
 * Makes `to` a copy of the snapshot. While the other node cannot be reached it waits and retries,
 * until it is cancelled or loses its patience. Another pull of the same snapshot from the same node
 * continues where it was; from another node it begins anew. Durable when it returns. The caller
 * deletes the row (pull_row), together with the write that makes the copy valid, or with the row of
 * a copy that has failed.
 *
 * PULL_NEW fetches everything if the difference from the base cannot be had: the base is not on
 * this node, cannot be copied cheaply, or the other node cannot tell the difference (any more).
 * PULL_ONTO fails with FAILED_PRECONDITION then, and if the contents of `to` are not known, because
 * the row is of another pull: make it anew. While a difference is applied, a tree may become twice
 * as large as the settings say.
 */
MUST_CHECK struct error *pull_data(struct engine *engine, const struct pull_request *request,
                                   const struct progress *progress);

/* The key of the row, in the arena. */
const char *pull_row(const struct data *to, struct arena *arena);

#endif
