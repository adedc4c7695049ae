/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a stream to the other node: it is collected into chunks, which are compressed if that
 * pays (transfer_packing.h), kept to the node's limit, and sent as messages.
 */
#ifndef CSI_TRANSFER_OUTLET_H
#define CSI_TRANSFER_OUTLET_H

#include "base/rate.h"
#include "cluster/sender.h"
#include "csi/transfer_packing.h"
#include "proto/transfer.rpc.h"
#include "rpc/server/call.h"
#include "stream/stream_zstd.h"

struct outlet {
    struct call *call;
    struct sender *sender; /* NULL: no limit, no metrics */
    struct rate rate;      /* of this stream */
    uint8_t *bytes;
    size_t size;
    uint8_t *packed;          /* as large as a chunk */
    struct stream_zstd *zstd; /* NULL: the other node cannot take compressed chunks */
    struct packing packing;
};

/* Both buffers are in the call's arena. `bytes_per_second` 0: only the node's limit counts. */
void outlet_open(struct outlet *outlet, struct call *call, struct sender *sender,
                 uint64_t bytes_per_second, bool may_pack);
/* A zeroed one is fine. */
void outlet_close(struct outlet *outlet);

/* The function of a sink. CANCELLED: nobody waits for the stream any more. */
MUST_CHECK struct error *outlet_write(void *outlet, const uint8_t *bytes, size_t size);

/* Sends what has been collected. */
MUST_CHECK struct error *outlet_flush(struct outlet *outlet);

#endif
