/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents of images: see extents.h. Walks through both files in parallel, from boundary to
 * boundary; between two boundaries each file is either one run or a hole. Memory use does not
 * depend on the number of extents.
 */
#include "backends/extents.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* Extents whose number is not their place. */
#define FIEMAP_WITHOUT_PLACE                                                                       \
    (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_ENCODED |                      \
     FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL)

static void
take_fiemap_extent(struct extent_reader *reader, const struct fiemap_extent *extent)
{
    reader->next_offset = extent->fe_logical + extent->fe_length;
    if (extent->fe_flags & FIEMAP_EXTENT_LAST)
        reader->is_done = true;
    if (extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
        return;
    reader->runs[reader->count++] =
        (struct extent_run){.offset = extent->fe_logical,
                            .size = extent->fe_length,
                            .position = extent->fe_physical,
                            .is_alone = extent->fe_flags & FIEMAP_WITHOUT_PLACE};
}

static struct error *
load_fiemap(struct extent_reader *reader)
{
    struct fiemap *map AUTO(memory_cleanup) =
        memory_zeroed(sizeof *map + EXTENT_BATCH * sizeof map->fm_extents[0]);
    while (!reader->count && !reader->is_done) {
        *map = (struct fiemap){.fm_start = reader->next_offset,
                               .fm_length = FIEMAP_MAX_OFFSET - reader->next_offset,
                               .fm_extent_count = EXTENT_BATCH};
        if (ioctl(reader->fd, FS_IOC_FIEMAP, map) != 0)
            return error_from_errno(errno, "read the extents of an image");
        reader->is_done = map->fm_mapped_extents == 0;
        for (unsigned i = 0; i < map->fm_mapped_extents; i++)
            take_fiemap_extent(reader, &map->fm_extents[i]);
    }
    return NULL;
}

static struct error *
load_seek(struct extent_reader *reader)
{
    while (reader->count < EXTENT_BATCH && !reader->is_done) {
        off_t start = lseek(reader->fd, (off_t)reader->next_offset, SEEK_DATA);
        off_t end = start < 0 ? -1 : lseek(reader->fd, start, SEEK_HOLE);
        if (end < 0 && errno != ENXIO)
            return error_from_errno(errno, "look for the holes of an image");
        reader->is_done = end < 0;
        if (end < 0)
            break;
        reader->runs[reader->count++] = (struct extent_run){
            .offset = (uint64_t)start, .size = (uint64_t)(end - start), .is_alone = true};
        reader->next_offset = (uint64_t)end;
    }
    return NULL;
}

static struct error *
open_reader(struct extent_reader *reader, int fd, uint64_t offset,
            struct error *(*load)(struct extent_reader *reader))
{
    struct stat status;
    if (fstat(fd, &status) != 0 || fdatasync(fd) != 0)
        return error_from_errno(errno, "make an image durable");
    *reader = (struct extent_reader){
        .load = load, .fd = fd, .size = (uint64_t)status.st_size, .next_offset = offset};
    return NULL;
}

struct error *
extents_open_fiemap(struct extent_reader *reader, int fd, uint64_t offset)
{
    return open_reader(reader, fd, offset, load_fiemap);
}

struct error *
extents_open_seek(struct extent_reader *reader, int fd, uint64_t offset)
{
    return open_reader(reader, fd, offset, load_seek);
}

/* Cuts off what a run has beyond the end of its file: extents end with a block. */
static void
cut_at_end(struct extent_run *run, uint64_t file_size)
{
    if (run->offset >= file_size)
        run->size = 0;
    else if (run->size > file_size - run->offset)
        run->size = file_size - run->offset;
}

/*
 * The first run that ends after the position, or NULL. A NULL reader stands for a file without
 * data.
 */
static struct error *
find_run(struct extent_reader *reader, uint64_t position, const struct extent_run **out)
{
    *out = NULL;
    while (reader) {
        for (; reader->current < reader->count; reader->current++) {
            struct extent_run *run = &reader->runs[reader->current];
            cut_at_end(run, reader->size);
            if (run->offset + run->size > position) {
                *out = run;
                return NULL;
            }
        }
        reader->current = reader->count = 0;
        struct error *error = reader->is_done ? NULL : reader->load(reader);
        if (error || !reader->count)
            return error;
    }
    return NULL;
}

/*
 * Moves the boundary forward to where the run begins or ends; returns NULL if the position is in a
 * hole.
 */
static const struct extent_run *
run_at(const struct extent_run *run, uint64_t position, uint64_t *boundary)
{
    if (!run)
        return NULL;
    bool is_inside = run->offset <= position;
    uint64_t next = is_inside ? run->offset + run->size : run->offset;
    if (next < *boundary)
        *boundary = next;
    return is_inside ? run : NULL;
}

static bool
is_same(const struct extent_run *a, const struct extent_run *b, uint64_t position)
{
    if (!a || !b)
        return a == b;
    return !a->is_alone && !b->is_alone && a->place == b->place &&
           a->position + (position - a->offset) == b->position + (position - b->offset);
}

/* Merges adjacent extents before the sink gets them. */
static struct error *
add(struct extent *collected, uint64_t start, uint64_t end, const struct extent_sink *sink)
{
    if (collected->size && collected->offset + collected->size == start) {
        collected->size += end - start;
        return NULL;
    }
    struct extent whole = *collected;
    *collected = (struct extent){start, end - start};
    return whole.size ? sink->take(sink->context, &whole) : NULL;
}

struct error *
extents_compare(struct extent_reader *data, struct extent_reader *base, uint64_t offset,
                const struct extent_sink *sink)
{
    struct extent collected = {0};
    struct error *error = NULL;
    for (uint64_t position = offset, end; !error && position < data->size; position = end) {
        const struct extent_run *ours, *theirs;
        error = find_run(data, position, &ours);
        if (!error)
            error = find_run(base, position, &theirs);
        if (error)
            break;
        end = data->size;
        ours = run_at(ours, position, &end);
        theirs = run_at(theirs, position, &end);
        bool is_wanted = base ? !is_same(ours, theirs, position) : ours != NULL;
        if (is_wanted)
            error = add(&collected, position, end, sink);
    }
    return !error && collected.size ? sink->take(sink->context, &collected) : error;
}
