/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a large file as chunks: see tree_source.h. Holes stay holes; data between them is
 * cut by its contents. Files with very many parts have lists of parts.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "exports/tree_source.h"

#define READ_BYTES (512u << 10) /* between looks at whether the work is cancelled */
#define BUFFER_BYTES (2u * CHUNKER_MOST)

struct error *
tree_source_check(struct tree_source *source)
{
    const struct progress *progress = source->progress;
    uint64_t done = source->counts.bytes;
    if (progress->cancelled(progress->context))
        return error_new(CODE_CANCELLED, "the export was cancelled");
    progress->report(progress->context, done,
                     done > source->expected_bytes ? done : source->expected_bytes);
    return NULL;
}

static struct error *
close_list(struct tree_source *source)
{
    struct tree_part list = {.kind = TREE_LIST};
    if (source->list_count == TREE_PARTS_MAX)
        return error_new(CODE_RESOURCE_EXHAUSTED, "a file has too many parts");
    for (size_t i = 0; i < source->part_count; i++)
        list.size += source->parts[i].size;
    struct error *error =
        tree_list_put(source->chunks, source->parts, source->part_count, &list.id);
    source->part_count = 0;
    if (!error)
        source->lists[source->list_count++] = list;
    return error;
}

static struct error *
add_part(struct tree_source *source, const struct tree_part *part)
{
    struct error *error = source->part_count == TREE_PARTS_MAX ? close_list(source) : NULL;
    if (!error)
        source->parts[source->part_count++] = *part;
    return error;
}

static struct error *
add_hole(struct tree_source *source, uint64_t size)
{
    return size ? add_part(source, &(struct tree_part){.kind = TREE_HOLE, .size = size}) : NULL;
}

static struct error *
put_chunk(struct tree_source *source, const uint8_t *bytes, size_t size)
{
    struct tree_part part = {.kind = TREE_DATA, .size = size};
    struct error *error = repository_writer_put(source->chunks, bytes, size, &part.id);
    return error ? error : add_part(source, &part);
}

/* Fills the buffer behind `have` bytes. `*have` grows until it is full or `end` is reached. */
static struct error *
fill(struct tree_source *source, int fd, const char *name, uint64_t *offset, uint64_t end,
     size_t *have)
{
    while (*have < BUFFER_BYTES && *offset < end) {
        uint64_t left = end - *offset;
        size_t room = BUFFER_BYTES - *have < READ_BYTES ? BUFFER_BYTES - *have : READ_BYTES;
        ssize_t got =
            pread(fd, source->bytes + *have, left < room ? (size_t)left : room, (off_t)*offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? error_from_errno(errno, "read %s", name)
                           : error_new(CODE_ABORTED, "%s became shorter", name);
        *have += (size_t)got;
        *offset += (uint64_t)got;
        source->counts.bytes_read += (uint64_t)got;
        source->counts.bytes += (uint64_t)got;
        struct error *error = tree_source_check(source);
        if (error)
            return error;
    }
    return NULL;
}

/* The data from `offset` to `end`. */
static struct error *
read_data(struct tree_source *source, int fd, const char *name, uint64_t offset, uint64_t end)
{
    size_t have = 0;
    for (;;) {
        size_t used = 0;
        struct error *error = fill(source, fd, name, &offset, end, &have);
        while (!error && have > used && (have - used >= CHUNKER_MOST || offset == end)) {
            size_t size = chunker_cut(&source->chunker, source->bytes + used, have - used);
            error = put_chunk(source, source->bytes + used, size);
            used += size;
        }
        if (error || (offset == end && used == have))
            return error;
        have -= used;
        memmove(source->bytes, source->bytes + used, have);
    }
}

/* The next data at or behind `offset`; the end of the file if there is none. */
static struct error *
find_data(int fd, const char *name, uint64_t offset, uint64_t size, uint64_t *start, uint64_t *end)
{
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO) {
        *start = *end = size;
        return NULL;
    }
    off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
    if (hole < 0)
        return error_from_errno(errno, "find the data of %s", name);
    *start = (uint64_t)data < size ? (uint64_t)data : size;
    *end = (uint64_t)hole < size ? (uint64_t)hole : size;
    return NULL;
}

struct error *
tree_contents_read(struct tree_source *source, int fd, const char *name, uint64_t size)
{
    struct error *error = NULL;
    source->part_count = source->list_count = 0;
    for (uint64_t offset = 0; !error && offset < size;) {
        uint64_t start, end;
        error = find_data(fd, name, offset, size, &start, &end);
        if (!error)
            error = add_hole(source, start - offset);
        source->counts.bytes += error ? 0 : start - offset;
        if (!error && end > start)
            error = read_data(source, fd, name, start, end);
        offset = error ? size : end;
    }
    if (!error && source->list_count && source->part_count)
        error = close_list(source);
    return error;
}
