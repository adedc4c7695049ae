/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a stream, compressed on their own with zstd. */
#ifndef STREAM_STREAM_ZSTD_H
#define STREAM_STREAM_ZSTD_H

#include "base/error.h"

#define STREAM_ZSTD_MOST (256u << 10) /* bytes of a piece before it is compressed */

struct stream_zstd;

/* Not thread safe: one owner at a time. */
struct stream_zstd *stream_zstd_new(void);
/* NULL is fine. */
void stream_zstd_free(struct stream_zstd *zstd);

/*
 * Compresses a piece quickly (level 1). Returns the size of the result; 0: it does not fit into
 * `room`.
 */
size_t stream_zstd_pack(struct stream_zstd *zstd, const uint8_t *bytes, size_t size, uint8_t *out,
                        size_t room);

/* `size` is exactly that of the piece; the caller has checked it. DATA_LOSS: it is none. */
MUST_CHECK struct error *stream_zstd_unpack(const uint8_t *packed, size_t packed_size, uint8_t *out,
                                            size_t size);

#endif
