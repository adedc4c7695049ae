/* SPDX-License-Identifier: Apache-2.0 */
/* A command of a stream with its attributes found and checked. */
#ifndef STREAM_STREAM_COMMAND_H
#define STREAM_STREAM_COMMAND_H

#include <stdbool.h>
#include <time.h>

#include "stream/stream_format.h"
#include "stream/stream_frames.h"

/* Bytes inside the frame, without a NUL behind them. `bytes` is NULL for an absent attribute. */
struct stream_text {
    const char *bytes;
    size_t size;
};

struct stream_command {
    unsigned type;
    struct stream_text attributes[STREAM_A_COUNT];
};

/*
 * All attributes that the command needs are there and have the right size. Paths are relative, not
 * longer than STREAM_PATH_MAX, and their names are neither empty nor "." nor ".."; the path of the
 * root is empty. INVALID_ARGUMENT if not, UNIMPLEMENTED for an unknown command.
 */
MUST_CHECK struct error *stream_command_parse(const struct stream_frame *frame,
                                              struct stream_command *out);

/* Only for attributes that the command needs. */
uint64_t stream_command_number(const struct stream_command *command, unsigned attribute);
struct timespec stream_command_time(const struct stream_command *command, unsigned attribute);

static inline bool
stream_text_is_same(struct stream_text a, struct stream_text b)
{
    return a.size == b.size && !memcmp(a.bytes, b.bytes, a.size);
}

#endif
