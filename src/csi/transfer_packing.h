/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether it pays to compress the next chunk of a transfer. It does if the link is slower than the
 * compressor, which is measured: how long chunks take that are sent as they are, and now and then
 * how long one takes to be compressed, and how small it becomes.
 */
#ifndef CSI_TRANSFER_PACKING_H
#define CSI_TRANSFER_PACKING_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at the beginning of a transfer. */
struct packing {
    bool is_on;        /* chunks are compressed; otherwise only one of many is, as a test */
    unsigned chunks;   /* since the last decision */
    unsigned pause;    /* how many chunks to send as they are until the next test */
    unsigned misses;   /* chunks that did not become smaller, one after the other */
    uint64_t plain_ns; /* what chunks took that were sent as they are, since the last decision */
    uint64_t plain_bytes;
};

/* Whether to compress the next chunk. */
bool packing_wants(const struct packing *packing);

/*
 * A chunk was compressed. Returns whether to send it so: it has become smaller by a tenth. Decides
 * about the next chunks.
 */
bool packing_take_packed(struct packing *packing, uint64_t bytes, uint64_t packed_bytes,
                         uint64_t pack_ns);

/* A chunk was sent as it is. `ns`: how long the link has kept the sender waiting. */
void packing_take_plain(struct packing *packing, uint64_t bytes, uint64_t ns);

#endif
