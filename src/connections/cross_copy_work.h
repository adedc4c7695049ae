/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a copy across connections: see cross_copy.h. */
#ifndef CONNECTIONS_CROSS_COPY_WORK_H
#define CONNECTIONS_CROSS_COPY_WORK_H

#include "backends/backend.h"
#include "connections/cross_copy_rows.h"

struct cross_copy_work {
    struct router *router;
    struct connection_set *set; /* references of its own, as the two that follow */
    struct connection *from;
    struct connection *to;
    struct arena arena;
    copy_record *record;
    struct text_map secrets;
    const char *key; /* of its row */
};

/*
 * Copies. When that has gone well both ends are let go of and the helping copy is gone; else
 * cross_copy_work_undo is to follow, or another run.
 */
MUST_CHECK struct error *cross_copy_work_run(struct cross_copy_work *work,
                                             const struct progress *progress);

/*
 * It has failed: lets go of both ends, removes the helping copy, and the target if it is known to
 * be ours. False: something could not be removed, which is logged; the record tells of it, and
 * another run goes on from there.
 */
bool cross_copy_work_undo(struct cross_copy_work *work);

#endif
