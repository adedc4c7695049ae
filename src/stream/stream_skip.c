/* SPDX-License-Identifier: Apache-2.0 */
/* Passing on the rest of a stream: see stream_skip.h. */
#include "stream/stream_skip.h"

#include <string.h>

/* The stream up to where it continues must be the one that was sent before. */
static struct error *
take_frame(void *context, const struct stream_frame *frame)
{
    const struct stream_skip *skip = context;
    const struct stream_position *position = &skip->frames.position;
    uint64_t from = skip->from->offset;
    bool is_beyond = position->offset > from && position->offset - frame->size < from;
    bool is_other =
        position->offset == from && memcmp(position->sum, skip->from->sum, STREAM_SUM_BYTES) != 0;
    if (is_beyond || is_other)
        return error_new(CODE_ABORTED, "the source does not give the same stream as before");
    return NULL;
}

struct error *
stream_skip_take(void *context, const uint8_t *bytes, size_t size)
{
    struct stream_skip *skip = context;
    const struct stream_frame_sink frames = {take_frame, skip};
    struct error *error = stream_frames_feed(&skip->frames, bytes, size, &frames);
    uint64_t from = skip->from->offset, offset = skip->offset;
    skip->offset += size;
    if (error || offset + size <= from)
        return error;
    size_t skipped = offset < from ? (size_t)(from - offset) : 0;
    return skip->sink->write(skip->sink->context, bytes + skipped, size - skipped);
}

struct error *
stream_skip_finish(const struct stream_skip *skip, struct stream_position *end)
{
    *end = skip->frames.position;
    if (!skip->frames.has_ended)
        return error_new(CODE_INTERNAL, "the stream has no end");
    if (end->offset < skip->from->offset)
        return error_new(CODE_ABORTED, "the source gives a shorter stream than before");
    return NULL;
}

void
stream_skip_clear(struct stream_skip *skip)
{
    stream_frames_clear(&skip->frames);
}
