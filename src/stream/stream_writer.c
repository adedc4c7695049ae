/* SPDX-License-Identifier: Apache-2.0 */
/* Writing streams: see stream_writer.h. File data is read to the place where the sink gets it. */
#include "stream/stream_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "stream/stream_sums.h"

#define BUFFER_BYTES (1u << 20)
#define COMMAND_MAX (STREAM_COMMAND_BYTES + STREAM_ATTRIBUTES_MAX)

static struct error *
flush(struct stream_writer *writer)
{
    struct error *error =
        writer->size ? writer->sink->write(writer->sink->context, writer->bytes, writer->size)
                     : NULL;
    writer->size = 0;
    return error;
}

/* The position is moved behind a command of this size, which the sink does not get. */
static struct error *
skip(struct stream_writer *writer, uint64_t size)
{
    writer->position.offset += size;
    if (writer->position.offset > writer->from.offset)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the stream has no command that begins at byte %llu",
                         (unsigned long long)writer->from.offset);
    if (writer->position.offset == writer->from.offset)
        writer->position = writer->from;
    return NULL;
}

static bool
is_skipping(const struct stream_writer *writer)
{
    return writer->position.offset < writer->from.offset;
}

/* What is at the end of the buffer from `start` on is whole: a command or the header. */
static struct error *
add(struct stream_writer *writer, size_t start)
{
    size_t size = writer->size - start;
    if (is_skipping(writer)) {
        writer->size = start;
        return skip(writer, size);
    }
    stream_sums_advance(&writer->position, writer->bytes + start, size);
    return NULL;
}

struct error *
stream_writer_open(struct stream_writer *writer, const struct stream_position *from,
                   const struct stream_sink *sink)
{
    *writer =
        (struct stream_writer){.sink = sink, .from = *from, .bytes = memory_new(BUFFER_BYTES)};
    memcpy(writer->bytes, STREAM_MAGIC, STREAM_MAGIC_BYTES);
    stream_store(writer->bytes + STREAM_MAGIC_BYTES, STREAM_VERSION, 4);
    writer->size = STREAM_HEADER_BYTES;
    return add(writer, 0);
}

void
stream_writer_close(struct stream_writer *writer)
{
    free(writer->bytes);
    *writer = (struct stream_writer){0};
}

static struct error *
begin(struct stream_writer *writer, unsigned command)
{
    struct error *error = writer->size + COMMAND_MAX > BUFFER_BYTES ? flush(writer) : NULL;
    writer->command = writer->size;
    memset(writer->bytes + writer->size, 0, STREAM_COMMAND_BYTES);
    stream_store(writer->bytes + writer->size + 4, command, 2);
    writer->size += STREAM_COMMAND_BYTES;
    return error;
}

struct error *
stream_writer_begin(struct stream_writer *writer, unsigned command, const char *path)
{
    struct error *error = begin(writer, command);
    if (error)
        return error;
    if (strlen(path) > STREAM_PATH_MAX)
        return error_new(CODE_FAILED_PRECONDITION, "a path is longer than %u bytes",
                         STREAM_PATH_MAX);
    stream_writer_put_text(writer, STREAM_A_PATH, strcmp(path, ".") ? path : "");
    return NULL;
}

void
stream_writer_put(struct stream_writer *writer, unsigned attribute, const void *value, size_t size)
{
    uint8_t *bytes = writer->bytes + writer->size;
    stream_store(bytes, attribute, 2);
    stream_store(bytes + 2, size, 2);
    if (size)
        memcpy(bytes + 4, value, size);
    writer->size += 4 + size;
}

void
stream_writer_put_text(struct stream_writer *writer, unsigned attribute, const char *text)
{
    stream_writer_put(writer, attribute, text, strlen(text));
}

void
stream_writer_put_number(struct stream_writer *writer, unsigned attribute, uint64_t number)
{
    uint8_t bytes[8];
    stream_store(bytes, number, 8);
    stream_writer_put(writer, attribute, bytes, attribute == STREAM_A_FALLOCATE_MODE ? 4 : 8);
}

void
stream_writer_put_time(struct stream_writer *writer, unsigned attribute,
                       const struct timespec *time)
{
    uint8_t bytes[12];
    stream_store(bytes, (uint64_t)time->tv_sec, 8);
    stream_store(bytes + 8, (uint64_t)time->tv_nsec, 4);
    stream_writer_put(writer, attribute, bytes, sizeof bytes);
}

struct error *
stream_writer_end(struct stream_writer *writer)
{
    uint8_t *command = writer->bytes + writer->command;
    size_t size = writer->size - writer->command;
    stream_store(command, size - STREAM_COMMAND_BYTES, 4);
    if (!is_skipping(writer))
        stream_store(command + 6, stream_sums_check(command, size), 4);
    return add(writer, writer->command);
}

/* ---- file data ---- */

static struct error *
read_fully(int fd, uint8_t *bytes, size_t size, uint64_t offset)
{
    while (size) {
        ssize_t got = pread(fd, bytes, size, (off_t)offset);
        if (got < 0 && errno != EINTR)
            return error_from_errno(errno, "read %zu bytes at %llu", size,
                                    (unsigned long long)offset);
        if (got == 0)
            return error_new(CODE_ABORTED, "the file has become shorter");
        if (got > 0) {
            bytes += got;
            offset += (uint64_t)got;
            size -= (size_t)got;
        }
    }
    return NULL;
}

static struct error *
write_command(struct stream_writer *writer, const char *path, int fd, uint64_t offset, size_t size)
{
    struct error *error = stream_writer_begin(writer, STREAM_WRITE, path);
    if (error)
        return error;
    stream_writer_put_number(writer, STREAM_A_FILE_OFFSET, offset);
    stream_store(writer->bytes + writer->size, STREAM_A_DATA, 2);
    writer->size += 2;
    if (is_skipping(writer)) {
        size_t whole = writer->size - writer->command + size;
        writer->size = writer->command;
        return skip(writer, whole);
    }
    error = read_fully(fd, writer->bytes + writer->size, size, offset);
    if (error)
        return error_wrap(error, "%s", path);
    writer->size += size;
    return stream_writer_end(writer);
}

struct error *
stream_writer_write(struct stream_writer *writer, const char *path, int fd, uint64_t offset,
                    uint64_t size)
{
    struct error *error = NULL;
    while (size && !error) {
        size_t part = size < STREAM_WRITE_BYTES ? size : STREAM_WRITE_BYTES;
        error = write_command(writer, path, fd, offset, part);
        offset += part;
        size -= part;
    }
    return error;
}

struct error *
stream_writer_finish(struct stream_writer *writer, struct stream_position *end)
{
    struct error *error = begin(writer, STREAM_END);
    if (!error)
        error = stream_writer_end(writer);
    if (!error)
        error = flush(writer);
    if (!error && is_skipping(writer))
        error = error_new(CODE_INVALID_ARGUMENT, "the stream has only %llu bytes",
                          (unsigned long long)writer->position.offset);
    *end = writer->position;
    return error;
}
