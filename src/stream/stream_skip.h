/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes on the part of a stream behind a position. For producers that must make a stream from its
 * beginning: what comes before the position is compared with the position's sum, and not passed on.
 */
#ifndef STREAM_STREAM_SKIP_H
#define STREAM_STREAM_SKIP_H

#include "stream/stream.h"
#include "stream/stream_frames.h"

/* All zero but for the first two, which must live as long as it. */
struct stream_skip {
    const struct stream_position *from;
    const struct stream_sink *sink;
    struct stream_frames frames;
    uint64_t offset; /* of what has been taken */
};

/*
 * Takes the next bytes of the stream; the function of a sink. ABORTED: the stream is not the one
 * that the position belongs to.
 */
MUST_CHECK struct error *stream_skip_take(void *skip, const uint8_t *bytes, size_t size);

/*
 * Called behind the last byte. `*end` is the end of the stream. ABORTED if that is before the
 * position, INTERNAL if the stream has no end.
 */
MUST_CHECK struct error *stream_skip_finish(const struct stream_skip *skip,
                                            struct stream_position *end);

/* For `struct stream_skip skip AUTO(stream_skip_clear) = {from, sink}`. */
void stream_skip_clear(struct stream_skip *skip);

#endif
