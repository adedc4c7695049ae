/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of streams: a stream in memory, a directory, and a receiver whose position is kept. */
#ifndef UNIT_STREAM_ENDS_H
#define UNIT_STREAM_ENDS_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "check.h"
#include "stream/stream_receiver.h"
#include "stream/stream_writer.h"

struct stream_ends {
    struct stream_writer writer;
    struct stream_sink sink;
    struct buffer stream;
    struct stream_position end;
    char directory[64]; /* the tree; "outside" is beside it */
    struct stream_position saved;
    unsigned commits;
};

static inline struct error *
ends_write(void *context, const uint8_t *bytes, size_t size)
{
    struct stream_ends *ends = context;
    buffer_append(&ends->stream, bytes, size);
    return NULL;
}

static inline struct error *
ends_save(void *context, const struct stream_position *position)
{
    struct stream_ends *ends = context;
    ends->saved = *position;
    ends->commits++;
    return NULL;
}

/* ---- a stream ---- */

static inline void
ends_begin(struct stream_ends *ends)
{
    buffer_clear(&ends->stream);
    ends->sink = (struct stream_sink){ends_write, ends};
    CHECK(!stream_writer_open(&ends->writer, &(struct stream_position){0}, &ends->sink));
}

static inline void
ends_command(struct stream_ends *ends, unsigned type, const char *path)
{
    CHECK(!stream_writer_begin(&ends->writer, type, path));
}

/* A command with a path and at most one further text. */
static inline void
ends_add(struct stream_ends *ends, unsigned type, const char *path, unsigned attribute,
         const char *text)
{
    ends_command(ends, type, path);
    if (text)
        stream_writer_put_text(&ends->writer, attribute, text);
    CHECK(!stream_writer_end(&ends->writer));
}

static inline void
ends_make(struct stream_ends *ends, const char *path)
{
    ends_add(ends, STREAM_MKFILE, path, 0, NULL);
}

static inline void
ends_rename(struct stream_ends *ends, const char *from, const char *to)
{
    ends_add(ends, STREAM_RENAME, from, STREAM_A_PATH_TO, to);
}

/* A command with a path and at most two numbers; attributes of 0 are left out. */
static inline void
ends_add_numbers(struct stream_ends *ends, unsigned type, const char *path, unsigned first,
                 uint64_t a, unsigned second, uint64_t b)
{
    ends_command(ends, type, path);
    if (first)
        stream_writer_put_number(&ends->writer, first, a);
    if (second)
        stream_writer_put_number(&ends->writer, second, b);
    CHECK(!stream_writer_end(&ends->writer));
}

/* The text is short: it goes into the last attribute as the format has it. */
static inline void
ends_write_text(struct stream_ends *ends, const char *path, uint64_t offset, const char *text)
{
    ends_command(ends, STREAM_WRITE, path);
    stream_writer_put_number(&ends->writer, STREAM_A_FILE_OFFSET, offset);
    stream_store(ends->writer.bytes + ends->writer.size, STREAM_A_DATA, 2);
    memcpy(ends->writer.bytes + ends->writer.size + 2, text, strlen(text));
    ends->writer.size += 2 + strlen(text);
    CHECK(!stream_writer_end(&ends->writer));
}

static inline void
ends_finish(struct stream_ends *ends)
{
    CHECK(!stream_writer_finish(&ends->writer, &ends->end));
    stream_writer_close(&ends->writer);
}

/* ---- a directory ---- */

static inline void
ends_new_directory(struct stream_ends *ends)
{
    /* In memory, where a commit costs nothing. */
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("SKYCAP_TMP");
    snprintf(ends->directory, sizeof ends->directory, "%s/streamXXXXXX", parent ? parent : "/tmp");
    CHECK(mkdtemp(ends->directory) != NULL);
    ends->saved = (struct stream_position){0};
    ends->commits = 0;
}

static inline void
ends_remove_directory(struct stream_ends *ends)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", ends->directory);
    CHECK(system(command) == 0);
}

/* The contents of a file of the tree, or "missing". */
static inline const char *
ends_read(const struct stream_ends *ends, const char *name)
{
    static char text[256];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", ends->directory, name);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return "missing";
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got < 0 ? 0 : got] = 0;
    return text;
}

/* ---- a receiver ---- */

static inline struct stream_receiver *
ends_open(struct stream_ends *ends, uint64_t max_file_bytes)
{
    struct stream_receiver *receiver = NULL;
    int root = open(ends->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stream_receiver_options options = {.root = root,
                                              .from = ends->saved,
                                              .max_file_bytes = max_file_bytes,
                                              .save = ends_save,
                                              .context = ends};
    CHECK(!stream_receiver_open(&options, &receiver));
    close(root);
    return receiver;
}

/* Feeds the stream from the saved position up to `end`, with a commit every so many bytes. */
static inline struct error *
ends_feed(struct stream_ends *ends, struct stream_receiver *receiver, size_t end, size_t piece)
{
    struct error *error = NULL;
    for (size_t at = ends->saved.offset; at < end && !error;) {
        size_t part = end - at < piece ? end - at : piece;
        error = stream_receiver_feed(receiver, ends->stream.bytes + at, part);
        at += part;
    }
    return error;
}

/* Applies the whole stream to a new directory; returns what went wrong. */
static inline struct error *
ends_apply(struct stream_ends *ends, uint64_t max_file_bytes)
{
    ends_new_directory(ends);
    struct stream_receiver *receiver = ends_open(ends, max_file_bytes);
    struct error *error = ends_feed(ends, receiver, ends->stream.size, SIZE_MAX);
    if (!error)
        error = stream_receiver_finish(receiver, &ends->end);
    stream_receiver_close(receiver);
    return error;
}

#endif
