/* SPDX-License-Identifier: Apache-2.0 */
/* Sending files: see stream_file.h. */
#include "stream/stream_file.h"

#include <errno.h>
#include <linux/falloc.h>
#include <unistd.h>

/*
 * The next range of data from `start` on; there is none if both are `end` then. Where the file
 * system does not know, everything is data.
 */
static struct error *
find_data(int fd, uint64_t start, uint64_t end, uint64_t *from, uint64_t *to)
{
    *from = *to = end;
    off_t data = lseek(fd, (off_t)start, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        return NULL;
    if (data < 0 && errno != EINVAL)
        return error_from_errno(errno, "look for data");
    if (data >= 0 && (uint64_t)data >= end)
        return NULL;
    *from = data < 0 ? start : (uint64_t)data;
    off_t hole = lseek(fd, (off_t)*from, SEEK_HOLE);
    if (hole < 0 && errno != EINVAL)
        return error_from_errno(errno, "look for a hole");
    if (hole > (off_t)*from && (uint64_t)hole < end)
        *to = (uint64_t)hole;
    return NULL;
}

static struct error *
punch(struct stream_writer *writer, const char *path, uint64_t start, uint64_t end)
{
    struct error *error = stream_writer_begin(writer, STREAM_FALLOCATE, path);
    if (error)
        return error;
    stream_writer_put_number(writer, STREAM_A_FALLOCATE_MODE,
                             FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    stream_writer_put_number(writer, STREAM_A_FILE_OFFSET, start);
    stream_writer_put_number(writer, STREAM_A_SIZE, end - start);
    return stream_writer_end(writer);
}

struct error *
stream_file_send(struct stream_writer *writer, const char *path, int fd, uint64_t start,
                 uint64_t end, bool with_holes, uint64_t *reached)
{
    *reached = start;
    while (start < end) {
        uint64_t from, to;
        struct error *error = find_data(fd, start, end, &from, &to);
        if (!error && with_holes && from > start)
            error = punch(writer, path, start, from);
        if (!error)
            error = stream_writer_write(writer, path, fd, from, to - from);
        if (error)
            return error;
        if (with_holes || to > from)
            *reached = to;
        start = to;
    }
    return NULL;
}

struct error *
stream_file_truncate(struct stream_writer *writer, const char *path, uint64_t size)
{
    struct error *error = stream_writer_begin(writer, STREAM_TRUNCATE, path);
    if (error)
        return error;
    stream_writer_put_number(writer, STREAM_A_SIZE, size);
    return stream_writer_end(writer);
}
