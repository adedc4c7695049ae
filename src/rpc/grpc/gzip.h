/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses gzip messages (grpc-encoding: gzip). This program never compresses. */
#ifndef RPC_GRPC_GZIP_H
#define RPC_GRPC_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* `limit` is the size of `out`. RESOURCE_EXHAUSTED: the plaintext is larger. INTERNAL: not gzip. */
MUST_CHECK struct error *gzip_inflate(const uint8_t *bytes, size_t size, uint8_t *out, size_t limit,
                                      size_t *out_size);

#endif
