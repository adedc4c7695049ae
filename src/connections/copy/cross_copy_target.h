/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a copy across connections, and the plan that is written before it: see
 * cross_copy.h.
 */
#ifndef CONNECTIONS_COPY_CROSS_COPY_TARGET_H
#define CONNECTIONS_COPY_CROSS_COPY_TARGET_H

#include "connections/copy/cross_copy_rows.h"

/*
 * Checks the source and creates the target. `row` has the plan of an earlier request, if any, and
 * gets the new record. ALREADY_EXISTS: the target is an older volume. On a worker.
 */
MUST_CHECK struct error *cross_copy_target_make(struct call *call, const struct connection_set *set,
                                                struct connection *from, struct connection *to,
                                                const Csi__V1__CreateVolumeRequest *request,
                                                struct copy_row *row);

MUST_CHECK struct error *cross_copy_target_delete_plan(struct router *router,
                                                       const struct copy_row *row,
                                                       struct arena *arena);

#endif
