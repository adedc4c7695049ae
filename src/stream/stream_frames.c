/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splitting streams: see stream_frames.h. A frame that is whole in the caller's bytes is not
 * copied.
 */
#include "stream/stream_frames.h"

#include "stream/stream_format.h"
#include "stream/stream_sums.h"

static struct error *
damaged(const struct stream_frames *frames, const char *what)
{
    return error_new(CODE_DATA_LOSS, "the stream is damaged at byte %llu: %s",
                     (unsigned long long)frames->position.offset, what);
}

/* The size of the frame that begins with these bytes, or how many are needed to know it. */
static struct error *
measure(const struct stream_frames *frames, const uint8_t *bytes, size_t available, size_t *size)
{
    bool is_header = frames->position.offset == 0;
    *size = is_header ? STREAM_HEADER_BYTES : STREAM_COMMAND_BYTES;
    if (is_header || available < *size)
        return NULL;
    uint64_t attributes = stream_load(bytes, 4);
    if (attributes > STREAM_ATTRIBUTES_MAX)
        return damaged(frames, "a command is too large");
    *size += attributes;
    return NULL;
}

static struct error *
check_header(const struct stream_frames *frames, const uint8_t *bytes)
{
    if (memcmp(bytes, STREAM_MAGIC, STREAM_MAGIC_BYTES) != 0)
        return damaged(frames, "it does not begin like a stream");
    uint64_t version = stream_load(bytes + STREAM_MAGIC_BYTES, 4);
    if (version != STREAM_VERSION)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the stream has version %llu; only version %u can be applied",
                         (unsigned long long)version, STREAM_VERSION);
    return NULL;
}

static struct error *
take(struct stream_frames *frames, const uint8_t *bytes, size_t size,
     const struct stream_frame_sink *sink)
{
    struct stream_frame frame = {.bytes = bytes, .size = size};
    struct error *error = NULL;
    if (frames->position.offset == 0)
        error = check_header(frames, bytes);
    else
        frame.type = (unsigned)stream_load(bytes + 4, 2);
    if (error)
        return error;
    frames->has_ended = frame.type == STREAM_END;
    stream_sums_advance(&frames->position, bytes, size);
    return sink->take(sink->context, &frame);
}

/* Adds bytes to a frame that has begun earlier or is not whole; tells how many were used. */
static struct error *
collect(struct stream_frames *frames, const uint8_t *bytes, size_t size, size_t *used,
        const struct stream_frame_sink *sink)
{
    struct buffer *rest = &frames->rests[frames->current_rest];
    size_t wanted;
    *used = 0;
    for (;;) {
        struct error *error = measure(frames, rest->bytes, rest->size, &wanted);
        if (error)
            return error;
        if (rest->size == wanted)
            break;
        size_t part = wanted - rest->size < size - *used ? wanted - rest->size : size - *used;
        if (!part)
            return NULL;
        buffer_append(rest, bytes + *used, part);
        *used += part;
    }
    frames->current_rest = !frames->current_rest;
    frames->rests[frames->current_rest].size = 0;
    return take(frames, rest->bytes, wanted, sink);
}

struct error *
stream_frames_feed(struct stream_frames *frames, const uint8_t *bytes, size_t size,
                   const struct stream_frame_sink *sink)
{
    while (size) {
        if (frames->has_ended)
            return damaged(frames, "something follows its end");
        size_t used = 0;
        bool has_begun = frames->rests[frames->current_rest].size > 0;
        struct error *error = has_begun ? NULL : measure(frames, bytes, size, &used);
        if (!error && (has_begun || used > size))
            error = collect(frames, bytes, size, &used, sink);
        else if (!error)
            error = take(frames, bytes, used, sink);
        if (error)
            return error;
        bytes += used;
        size -= used;
    }
    return NULL;
}

void
stream_frames_clear(struct stream_frames *frames)
{
    buffer_clear(&frames->rests[0]);
    buffer_clear(&frames->rests[1]);
}
