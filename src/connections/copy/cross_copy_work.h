/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a copy across connections: see cross_copy.h. */
#ifndef CONNECTIONS_COPY_CROSS_COPY_WORK_H
#define CONNECTIONS_COPY_CROSS_COPY_WORK_H

#include "backends/backend.h"
#include "connections/copy/copied_sources.h"
#include "connections/copy/cross_copy_rows.h"

struct cross_copy_work {
    struct router *router;
    struct connection_set *set; /* references of its own, as the two that follow */
    struct connection *from;
    struct connection *to;
    struct arena arena;
    copy_record *record;
    struct text_map secrets;
    const char *key;              /* of its row */
    struct copied_source *source; /* while the source itself is read; else NULL */
    bool source_is_ours;          /* it was attached nowhere here: the copy detaches it */
};

/*
 * Copies the content, detaches both volumes and deletes the temporary copy. After an error call
 * cross_copy_work_undo, or run it again.
 */
MUST_CHECK struct error *cross_copy_work_run(struct cross_copy_work *work,
                                             const struct progress *progress);

/*
 * After a failure: detaches both volumes, and deletes the temporary copy, and the target if it is
 * known to be new. False: something could not be deleted; it is logged, the record holds it, and
 * another run continues from there.
 */
bool cross_copy_work_undo(struct cross_copy_work *work);

#endif
