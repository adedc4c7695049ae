/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of files in a tree: see stream_contents.h. */
#include "stream/stream_contents.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"

#define COPY_BYTES (256u << 10)
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

/* How many bytes the command is about. */
static uint64_t
read_size(const struct stream_command *command)
{
    switch (command->type) {
    case STREAM_WRITE:
        return command->attributes[STREAM_A_DATA].size;
    case STREAM_CLONE:
        return stream_command_number(command, STREAM_A_CLONE_LEN);
    default:
        return stream_command_number(command, STREAM_A_SIZE);
    }
}

struct error *
stream_contents_find_range(const struct stream_contents *contents,
                           const struct stream_command *command, struct stream_range *out)
{
    bool is_truncate = command->type == STREAM_TRUNCATE;
    uint64_t start = is_truncate ? 0 : stream_command_number(command, STREAM_A_FILE_OFFSET);
    uint64_t size = read_size(command);
    uint64_t max = contents->max_file_bytes;
    if (start > max || size > max - start)
        return error_new(CODE_OUT_OF_RANGE, "the stream makes a file larger than %llu bytes",
                         (unsigned long long)max);
    *out = is_truncate ? (struct stream_range){size, UINT64_MAX}
                       : (struct stream_range){start, start + size};
    return NULL;
}

/* ---- writing ---- */

static void
drop_written(struct stream_contents *contents, size_t written)
{
    unsigned first = 0;
    contents->start += written;
    contents->size -= written;
    while (first < contents->count && written >= contents->parts[first].iov_len)
        written -= contents->parts[first++].iov_len;
    contents->count -= first;
    memmove(contents->parts, contents->parts + first, contents->count * sizeof contents->parts[0]);
    if (written) {
        contents->parts[0].iov_base = (char *)contents->parts[0].iov_base + written;
        contents->parts[0].iov_len -= written;
    }
}

struct error *
stream_contents_flush(struct stream_contents *contents)
{
    while (contents->count) {
        ssize_t written = pwritev(contents->tree->file.fd, contents->parts, (int)contents->count,
                                  (off_t)contents->start);
        if (written < 0 && errno != EINTR)
            return error_from_errno(errno, "write %llu bytes to %s",
                                    (unsigned long long)contents->size, contents->tree->file.path);
        if (written > 0)
            drop_written(contents, (size_t)written);
    }
    return NULL;
}

struct error *
stream_contents_write(struct stream_contents *contents, const struct stream_command *command)
{
    struct stream_text data = command->attributes[STREAM_A_DATA];
    uint64_t start = stream_command_number(command, STREAM_A_FILE_OFFSET);
    bool follows = contents->count && contents->start + contents->size == start;
    if (!data.size)
        return NULL;
    if (!follows || contents->count == STREAM_CONTENTS_PARTS) {
        struct error *error = stream_contents_flush(contents);
        if (error)
            return error;
        contents->start = start;
        contents->size = 0;
    }
    contents->parts[contents->count++] = (struct iovec){(void *)data.bytes, data.size};
    contents->size += data.size;
    return NULL;
}

/* ---- other changes ---- */

static struct error *
write_fully(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
    while (size) {
        ssize_t written = pwrite(fd, bytes, size, (off_t)offset);
        if (written < 0 && errno != EINTR)
            return error_from_errno(errno, "write a copy");
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
            offset += (uint64_t)written;
        }
    }
    return NULL;
}

static struct error *
copy(int from, uint64_t from_offset, int to, uint64_t to_offset, uint64_t size)
{
    uint8_t *bytes AUTO(memory_cleanup) = memory_new(COPY_BYTES);
    while (size) {
        ssize_t got = pread(from, bytes, size < COPY_BYTES ? size : COPY_BYTES, (off_t)from_offset);
        if (got < 0 && errno != EINTR)
            return error_from_errno(errno, "read what is copied");
        if (got == 0)
            return error_new(CODE_INVALID_ARGUMENT, "the stream copies what is not there");
        struct error *error = got > 0 ? write_fully(to, bytes, (size_t)got, to_offset) : NULL;
        if (error)
            return error;
        from_offset += got > 0 ? (uint64_t)got : 0;
        to_offset += got > 0 ? (uint64_t)got : 0;
        size -= got > 0 ? (uint64_t)got : 0;
    }
    return NULL;
}

struct error *
stream_contents_clone(struct stream_contents *contents, const struct stream_command *command,
                      int source)
{
    int to = contents->tree->file.fd;
    struct file_clone_range range = {
        .src_fd = source,
        .src_offset = stream_command_number(command, STREAM_A_CLONE_OFFSET),
        .src_length = stream_command_number(command, STREAM_A_CLONE_LEN),
        .dest_offset = stream_command_number(command, STREAM_A_FILE_OFFSET)};
    if (range.src_offset > INT64_MAX || range.src_length > INT64_MAX - range.src_offset)
        return error_new(CODE_INVALID_ARGUMENT, "the stream copies what is not there");
    /* A length of 0 would mean: up to the end. */
    if (!range.src_length || ioctl(to, FICLONERANGE, &range) == 0)
        return NULL;
    if (errno != EOPNOTSUPP && errno != ENOTTY && errno != EXDEV && errno != EINVAL)
        return error_from_errno(errno, "clone into %s", contents->tree->file.path);
    return copy(source, range.src_offset, to, range.dest_offset, range.src_length);
}

struct error *
stream_contents_truncate(struct stream_contents *contents, const struct stream_command *command)
{
    const struct stream_file *file = &contents->tree->file;
    if (ftruncate(file->fd, (off_t)stream_command_number(command, STREAM_A_SIZE)) != 0)
        return error_from_errno(errno, "set the size of %s", file->path);
    return NULL;
}

struct error *
stream_contents_punch(struct stream_contents *contents, const struct stream_command *command)
{
    const struct stream_file *file = &contents->tree->file;
    uint64_t offset = stream_command_number(command, STREAM_A_FILE_OFFSET);
    uint64_t size = stream_command_number(command, STREAM_A_SIZE);
    /* Only holes are known: to preallocate would take space that nothing was written to. */
    if (stream_command_number(command, STREAM_A_FALLOCATE_MODE) != PUNCH)
        return error_new(CODE_UNIMPLEMENTED, "the stream has an unknown kind of fallocate");
    if (!size || fallocate(file->fd, PUNCH, (off_t)offset, (off_t)size) == 0)
        return NULL;
    return error_from_errno(errno, "make a hole in %s", file->path);
}
