/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the commands of a stream to a sink, many at a time. A stream that continues is made from
 * its beginning, but nothing before the position is passed on, and file data before it is not even
 * read.
 *
 * A command is begun, gets its attributes, and is ended.
 */
#ifndef STREAM_STREAM_WRITER_H
#define STREAM_STREAM_WRITER_H

#include <time.h>

#include "stream/stream.h"
#include "stream/stream_format.h"

struct stream_writer {
    const struct stream_sink *sink;
    struct stream_position from;     /* nothing before it goes to the sink */
    struct stream_position position; /* behind the last command */
    uint8_t *bytes;                  /* not yet in the sink; the current command is the last */
    size_t size;
    size_t command; /* where the current command begins */
};

/* The sink must live as long as the writer. */
MUST_CHECK struct error *stream_writer_open(struct stream_writer *writer,
                                            const struct stream_position *from,
                                            const struct stream_sink *sink);
/* Writes nothing more. Also for `struct stream_writer w AUTO(stream_writer_close) = {0}`. */
void stream_writer_close(struct stream_writer *writer);

/* Begins a command about a path. "." stands for the root. */
MUST_CHECK struct error *stream_writer_begin(struct stream_writer *writer, unsigned command,
                                             const char *path);
/* The value has at most 65,535 bytes; all attributes of a command fit into 96 KiB. */
void stream_writer_put(struct stream_writer *writer, unsigned attribute, const void *value,
                       size_t size);
void stream_writer_put_text(struct stream_writer *writer, unsigned attribute, const char *text);
void stream_writer_put_number(struct stream_writer *writer, unsigned attribute, uint64_t number);
void stream_writer_put_time(struct stream_writer *writer, unsigned attribute,
                            const struct timespec *time);
MUST_CHECK struct error *stream_writer_end(struct stream_writer *writer);

/* Write commands with this range of an open file. ABORTED if the file has become shorter. */
MUST_CHECK struct error *stream_writer_write(struct stream_writer *writer, const char *path, int fd,
                                             uint64_t offset, uint64_t size);

/* Ends the stream and passes the rest to the sink. */
MUST_CHECK struct error *stream_writer_finish(struct stream_writer *writer,
                                              struct stream_position *end);

#endif
