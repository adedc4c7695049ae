/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume of one connection made from a volume or snapshot of another: the two drivers know
 * nothing of each other, so both volumes are brought to this node as an orchestrator would bring
 * them, and the content goes from the one to the other.
 *
 *     the plan     is a durable row that is written first: which volumes the target's driver has
 *     the target   is made next by that driver; the row says then what it is to become. If it was there before it is left as it is: a driver gives the same
 *                  volume for the same name
 *     the source   is a helping copy that its own driver makes (a clone, or a volume of the snapshot), so that nothing changes
 *                  underneath; where the driver cannot, the volume itself, read only
 *     the work     is an operation (ops/ops.h) with the target's id, that can be watched and cancelled; CreateVolume waits for it as
 *                  long as its caller does, and says ABORTED then: the same request again waits on
 *     the end      one durable write: the row stands among those that are done. Or the target goes, then the row.
 *
 * After a crash the work is taken up again by itself, or, where it needs secrets, by the next
 * repetition of the request.
 */
#ifndef CONNECTIONS_CROSS_COPY_H
#define CONNECTIONS_CROSS_COPY_H

#include "connections/connection.h"
#include "connections/router_internal.h"

/*
 * The connection that a copy of this name was or is being made for; NULL: there is none, as far as
 * `set` goes.
 */
MUST_CHECK struct error *cross_copy_find_place(struct call *call, const struct connection_set *set,
                                               const char *name, struct connection **out);

/* CreateVolume whose content comes from another connection. On a worker. */
MUST_CHECK struct error *cross_copy_volume(struct call *call, const struct connection_set *set,
                                           struct connection *from, struct connection *to,
                                           const Csi__V1__CreateVolumeRequest *request,
                                           Csi__V1__CreateVolumeResponse *reply);

/*
 * Another request is about to make a volume of this name there: if a copy that was given up has
 * left a plan, what the driver answers with is no longer taken for that copy's.
 */
MUST_CHECK struct error *cross_copy_drop_plan(struct call *call, const struct connection_set *set,
                                              const struct connection *connection,
                                              const char *name);

/* At start: goes on with what a crash has interrupted. */
MUST_CHECK struct error *cross_copy_resume_all(struct router *router);

#endif
