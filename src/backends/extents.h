/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of an image are allocated, and which differ from another image, according to their
 * place in the file system. Does not read the contents.
 */
#ifndef BACKENDS_EXTENTS_H
#define BACKENDS_EXTENTS_H

#include "backends/backend.h"

#define EXTENT_BATCH 512u

/* A range of allocated bytes of a file, neither a hole nor preallocated. */
struct extent_run {
    uint64_t offset;
    uint64_t size;
    /* Two runs with the same place and position hold the same bytes. */
    uint64_t place;
    uint64_t position;
    bool is_alone; /* the place means nothing: differs from every other run */
};

/* Reads the runs of a file in ascending order, some at a time. Large: on the heap. */
struct extent_reader {
    /* Loads the next runs into the reader; none means the end. */
    struct error *(*load)(struct extent_reader *reader);
    int fd;
    uint64_t inode;
    uint64_t size; /* of the file */
    uint64_t next_offset;
    bool is_done;
    struct extent_run runs[EXTENT_BATCH];
    unsigned count;
    unsigned current;
};

/*
 * Readers of an open file; they first flush what users have written, so that it has a place. FIEMAP
 * tells the places of the bytes. Seeking for holes works on any file system, but tells only which
 * bytes are allocated.
 */
MUST_CHECK struct error *extents_open_fiemap(struct extent_reader *reader, int fd, uint64_t offset);
MUST_CHECK struct error *extents_open_seek(struct extent_reader *reader, int fd, uint64_t offset);

/*
 * Passes the extents of `data` from `offset` on to the sink: all that are allocated, or with `base`
 * those that may differ.
 */
MUST_CHECK struct error *extents_compare(struct extent_reader *data, struct extent_reader *base,
                                         uint64_t offset, const struct extent_sink *sink);

#endif
