/* SPDX-License-Identifier: Apache-2.0 */
/* Inflating what clients compress with gzip (grpc-encoding: gzip). Nothing is ever compressed here. */
#ifndef RPC_GZIP_H
#define RPC_GZIP_H

#include "base/buffer.h"
#include "base/error.h"

/* RESOURCE_EXHAUSTED when the plain text would be larger than `limit`; INTERNAL when the bytes are no gzip. */
MUST_CHECK struct error *gzip_inflate(const uint8_t *bytes, size_t size, size_t limit,
                                      struct buffer *out);

#endif
