/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that take their time. Where the back end cannot copy in an instant, a volume or snapshot
 * with a source is made by an operation (ops/ops.h) whose id is its handle:
 *
 *     start     one write: the row COPYING, its name, the operation RUNNING
 *     work      the data, then the note beside it
 *     the end   one write: the row READY, the operation SUCCEEDED. Or else the data goes, then in
 *               one write the row and its name, and the operation is FAILED or CANCELLED
 *
 * So a name finds its copy from the start, and the same request again waits for it and never starts
 * another. After a crash the row is still COPYING and the data is copied again, from the start.
 */
#ifndef VOLUMES_COPY_H
#define VOLUMES_COPY_H

#include "volumes/rows.h"

#define COPY_VOLUME "copy-volume" /* kinds of operations */
#define COPY_SNAPSHOT "copy-snapshot"

/*
 * `record` is what is to be there in the end; `*source` from data_lock_shared is taken. Returns
 * when the start is durable.
 */
MUST_CHECK struct error *copy_start(struct engine *engine, const struct row_kind *kind,
                                    const ProtobufCMessage *record, const struct data *from,
                                    struct name_lock **source);

struct copy_state {
    unsigned percent; /* 100 when it is done */
    bool has_begun;   /* a source that has to be frozen is */
};

/* Waits for the end, at most so long. An error is how the copy failed. */
MUST_CHECK struct error *copy_wait(struct engine *engine, const char *handle, uint64_t wait_ms,
                                   struct copy_state *out);

/*
 * Cancels it and waits for its end, for a few seconds: then ABORTED. It may have been done before;
 * the row says so.
 */
MUST_CHECK struct error *copy_abandon(struct engine *engine, const char *handle);

/* At start: what was being copied is copied again; where the source is gone it fails. */
MUST_CHECK struct error *copy_resume_all(struct engine *engine);

#endif
