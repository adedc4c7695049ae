/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory tree of any file system as a stream. Entries are sent in the order of their names, so
 * that a tree always gives the same stream: hard links, symbolic links, devices, fifos, sockets,
 * holes, owners, modes, times and extended attributes (with access lists and capabilities).
 *
 * Nobody may change the tree meanwhile. Symbolic links are not followed, mounts not entered.
 */
#ifndef STREAM_STREAM_WALK_H
#define STREAM_STREAM_WALK_H

#include "stream/stream.h"

/* Files with several names that are remembered, at about 100 bytes each. */
#define STREAM_WALK_LINKS_MAX (4u << 20)
/* The names of one directory, which are sorted in memory. */
#define STREAM_WALK_NAMES_BYTES (512u << 20)

/*
 * FAILED_PRECONDITION for a mount inside, or a tree deeper than a path can name; RESOURCE_EXHAUSTED
 * beyond the limits above; ABORTED if something has changed.
 */
MUST_CHECK struct error *stream_walk_send(int root, const struct stream_position *from,
                                          const struct stream_sink *sink,
                                          struct stream_position *end);

#endif
