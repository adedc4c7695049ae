/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CreateVolume on one connection with the content of a volume or snapshot of another. The two
 * drivers know nothing of each other, so both volumes are published on this node, as an
 * orchestrator would do it, and the content is copied from one to the other.
 *
 *   1. The plan, a durable row, records which volumes the target's driver has.
 *   2. The target's driver makes the target; the row then holds its id. A driver returns the same
 *      volume for the same name, so a target that existed before is left as it is.
 *   3. The source's driver makes a temporary copy of the source (a clone, or a volume of the
 *      snapshot), so that the content does not change meanwhile. A driver that cannot clone
 *      has the volume itself published read-only; only one copy at a time reads it.
 *   4. An operation (ops/ops.h) with the target's id copies the content. It can be watched and
 *      cancelled. CreateVolume waits as long as its caller does, then answers ABORTED; the same
 *      request waits on.
 *   5. One durable write moves the row to the finished ones. If the copy fails the target is
 *      deleted, then the row.
 *
 * After a crash the operation resumes by itself, or, if it needs secrets, with the next repetition
 * of the request.
 */
#ifndef CONNECTIONS_COPY_CROSS_COPY_H
#define CONNECTIONS_COPY_CROSS_COPY_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

/*
 * The connection in `set` that a copy of this name was or is being made for; NULL: there is none.
 */
MUST_CHECK struct error *cross_copy_find_connection(struct call *call,
                                                    const struct connection_set *set,
                                                    const char *name, struct connection **out);

/* CreateVolume whose content comes from another connection. On a worker. */
MUST_CHECK struct error *cross_copy_volume(struct call *call, const struct connection_set *set,
                                           struct connection *from, struct connection *to,
                                           const Csi__V1__CreateVolumeRequest *request,
                                           Csi__V1__CreateVolumeResponse *reply);

/*
 * Another request is about to make a volume of this name: deletes the plan that an abandoned copy
 * may have left, so that the new volume is not taken for that copy's target.
 */
MUST_CHECK struct error *cross_copy_drop_plan(struct call *call, const struct connection_set *set,
                                              const struct connection *connection,
                                              const char *name);

/* At start: resumes the copies that were interrupted. */
MUST_CHECK struct error *cross_copy_resume_all(struct router *router);

#endif
