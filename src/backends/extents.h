/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of an image are there, and which differ from another image, told from where the file
 * system has put them. Nothing of the contents is read.
 */
#ifndef BACKENDS_EXTENTS_H
#define BACKENDS_EXTENTS_H

#include "backends/backend.h"

#define EXTENT_BATCH 512u

/* A run of bytes of a file that are there (neither hole nor only reserved). */
struct extent_run {
    uint64_t offset;
    uint64_t size;
    /* Two runs with the same place and the same position in it hold the same bytes. */
    uint64_t place;
    uint64_t position;
    bool is_alone; /* the place tells nothing: equal to no other run */
};

/* Reads the runs of a file in ascending order, some at a time. Large: on the heap. */
struct extent_reader {
    /* Loads the next runs into the reader; none means that there are no more. */
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
 * Readers for a file that is open; what its users have written is made to have a place first. By
 * FIEMAP: where the bytes are. By seeking for holes: only that they are there, on any file system.
 */
MUST_CHECK struct error *extents_open_fiemap(struct extent_reader *reader, int fd, uint64_t offset);
MUST_CHECK struct error *extents_open_seek(struct extent_reader *reader, int fd, uint64_t offset);

/*
 * Hands the extents of `data` from `offset` on to the sink: those that are there, or with `base`
 * those that may differ.
 */
MUST_CHECK struct error *extents_compare(struct extent_reader *data, struct extent_reader *base,
                                         uint64_t offset, const struct extent_sink *sink);

#endif
