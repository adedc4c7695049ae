/* SPDX-License-Identifier: Apache-2.0 */
/* A read-only subvolume of btrfs as a stream, made by the kernel (Linux 6.0 or later, and root). */
#ifndef STREAM_STREAM_BTRFS_H
#define STREAM_STREAM_BTRFS_H

#include "stream/stream.h"

/*
 * Sends the subvolume, or only what differs from `parent` (-1: none), another read-only subvolume
 * of the same file system. A stream that continues is made and read from its beginning, because the
 * kernel cannot do otherwise; ABORTED if it is not the stream that `from` belongs to.
 */
MUST_CHECK struct error *stream_btrfs_send(int subvolume, int parent,
                                           const struct stream_position *from,
                                           const struct stream_sink *sink,
                                           struct stream_position *end);

#endif
