/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a stream into its header and its commands, and counts the position. Whoever applies a
 * command checks its CRC32C.
 */
#ifndef STREAM_STREAM_FRAMES_H
#define STREAM_STREAM_FRAMES_H

#include <stdbool.h>

#include "base/buffer.h"
#include "stream/stream.h"

/* A command as it is in the stream. The type 0 stands for the header of the stream. */
struct stream_frame {
    unsigned type;
    const uint8_t *bytes;
    size_t size;
};

/*
 * Takes each frame, after the position has been moved behind it. The bytes are valid until the feed
 * that delivers the frame returns.
 */
struct stream_frame_sink {
    struct error *(*take)(void *context, const struct stream_frame *frame);
    void *context;
};

/* Begins with the position at which the stream continues, and zeros. */
struct stream_frames {
    struct stream_position position;
    /* The beginning of a frame. There are two: one may still be used when the next one begins. */
    struct buffer rests[2];
    unsigned current_rest;
    bool has_ended; /* END was seen */
};

/* DATA_LOSS if the bytes are no stream. The frames are of no use after an error. */
MUST_CHECK struct error *stream_frames_feed(struct stream_frames *frames, const uint8_t *bytes,
                                            size_t size, const struct stream_frame_sink *sink);
void stream_frames_clear(struct stream_frames *frames);

#endif
