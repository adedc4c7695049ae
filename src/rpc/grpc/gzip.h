/* SPDX-License-Identifier: Apache-2.0 */
/* Inflating what clients compress with gzip (grpc-encoding: gzip). Nothing is ever compressed here. */
#ifndef RPC_GRPC_GZIP_H
#define RPC_GRPC_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* RESOURCE_EXHAUSTED when the plain text would be larger than `limit`, which is the size of `out`; INTERNAL when the bytes are no gzip. */
MUST_CHECK struct error *gzip_inflate(const uint8_t *bytes, size_t size, uint8_t *out, size_t limit,
                                      size_t *out_size);

#endif
