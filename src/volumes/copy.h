/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long copies. Where the back end cannot copy instantly, an operation (ops/ops.h) makes a volume or
 * snapshot that has a source. The operation's id is the handle of what it makes:
 *
 *     start     one write: the row COPYING, its name, the operation RUNNING
 *     work      the data, then the note beside it
 *     end       one write: the row READY, the operation SUCCEEDED. Or the data is removed, then one
 *               write removes the row and its name and makes the operation FAILED or CANCELLED
 *
 * So the name leads to the copy from the start: a repeated request waits for the copy and never
 * starts another. After a crash the row is still COPYING, and the copy goes on where it was:
 * copy_cursor.h, and for one from another node pull.h.
 */
#ifndef VOLUMES_COPY_H
#define VOLUMES_COPY_H

#include "volumes/rows.h"

#define COPY_VOLUME "copy-volume" /* kinds of operations */
#define COPY_SNAPSHOT "copy-snapshot"

/*
 * `record` is the row as it will be in the end. Takes over `*source`, which is from
 * data_lock_shared. When it returns, the start is durable.
 */
MUST_CHECK struct error *copy_start(struct engine *engine, const struct row_kind *kind,
                                    const ProtobufCMessage *record, const struct data *from,
                                    struct name_lock **source);

struct copy_state {
    unsigned percent; /* 100 when it is done */
    bool has_begun;   /* if the source has to be frozen, it is */
};

/* Waits for the end for at most `wait_ms`. The error is that of the copy. */
MUST_CHECK struct error *copy_wait(struct engine *engine, const char *handle, uint64_t wait_ms,
                                   struct copy_state *out);

/*
 * Cancels the copy and waits a few seconds for it to end, then ABORTED. The copy may have ended
 * before; see the row.
 */
MUST_CHECK struct error *copy_abandon(struct engine *engine, const char *handle);

/* Called at start. Goes on with what was being copied; a copy whose source is gone fails. */
MUST_CHECK struct error *copy_resume_all(struct engine *engine);

#endif
