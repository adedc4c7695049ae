/* SPDX-License-Identifier: Apache-2.0 */
/* Sending snapshots to other nodes: Fetch of skycap.v1.Transfer, and what Open shares with it. */
#ifndef CSI_TRANSFER_SEND_H
#define CSI_TRANSFER_SEND_H

#include "proto/transfer.rpc.h"
#include "rpc/server/call.h"
#include "volumes/rows.h"

MUST_CHECK struct error *transfer_fetch(struct call *call, const Skycap__V1__FetchRequest *request);

/* INVALID_ARGUMENT: it cannot be one. */
MUST_CHECK struct error *transfer_check_handle(const char *field, const char *handle);

/* A snapshot of any purpose. ABORTED: it is not complete yet. */
MUST_CHECK struct error *transfer_find_snapshot(struct engine *engine, const char *handle,
                                                struct arena *arena, snapshot_record **out);

/*
 * The data of another snapshot of the same volume. FAILED_PRECONDITION: it is not here, or the
 * difference between the two cannot be told.
 */
MUST_CHECK struct error *transfer_find_base(struct engine *engine, const char *handle,
                                            const snapshot_record *snapshot, struct data *out);

#endif
