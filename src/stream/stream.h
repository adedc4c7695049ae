/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees and images as streams of commands. A producer (stream_btrfs.h, stream_walk.h,
 * stream_image.h) turns data into a stream, and stream_receiver.h applies a stream to a directory.
 * The format is that of the kernel's btrfs send, version 2; see docs/transfer.md. Nothing here
 * knows volumes or connections: there are only descriptors and bytes.
 */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define STREAM_SUM_BYTES 16u

/*
 * A place between two commands of a stream; all zero at its beginning. The sum covers everything
 * before it. It is all that must be kept to continue a transfer.
 */
struct stream_position {
    uint64_t offset;
    uint8_t sum[STREAM_SUM_BYTES];
};

/* Takes the bytes of a stream in order. They are the caller's: valid only during the call. */
struct stream_sink {
    struct error *(*write)(void *context, const uint8_t *bytes, size_t size);
    void *context;
};

#endif
