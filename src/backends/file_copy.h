/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the contents of a file: shares extents if the file system can, and keeps holes. */
#ifndef BACKENDS_FILE_COPY_H
#define BACKENDS_FILE_COPY_H

#include "backends/backend.h"

/* A copy of one file or of many, with its progress. */
struct copy_job {
    const struct progress *progress; /* may be NULL */
    uint64_t done_bytes;
    uint64_t total_bytes;
    /* an earlier attempt may have left something, which is kept if it is right */
    bool goes_on;
    bool cannot_share; /* found during the copy: the two file systems share no extents */
    /* of a single file: goes on there, and saves from time to time what is durable. NULL: not */
    struct copy_position *position;
    uint64_t saved_ms;
};

/* Adds to the bytes done. CANCELLED if the copy is no longer wanted. */
MUST_CHECK struct error *copy_job_advance(struct copy_job *job, uint64_t bytes);

/*
 * `to` is an empty file, or one with all before the position, open for writing; it gets the bytes,
 * the holes and the size of `from`.
 */
MUST_CHECK struct error *file_copy(struct copy_job *job, int from, int to);

#endif
