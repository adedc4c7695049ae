/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies what is in a file: shared with the source where the file system can, holes kept in any
 * case.
 */
#ifndef BACKENDS_FILE_COPY_H
#define BACKENDS_FILE_COPY_H

#include "backends/backend.h"

/* One copy, of one file or of many, that tells how far it is. */
struct copy_job {
    const struct progress *progress; /* may be NULL */
    uint64_t done_bytes;
    uint64_t total_bytes;
    /* there may be something of an earlier attempt, which is kept where it is right */
    bool goes_on;
    bool cannot_share; /* found out on the way: these two file systems share no extents */
};

/* So many bytes more are done. CANCELLED when the one who waits does not want it any more. */
MUST_CHECK struct error *copy_job_advance(struct copy_job *job, uint64_t bytes);

/*
 * `to` is an empty file that is open for writing; it gets the bytes, the holes and the size that
 * `from` has.
 */
MUST_CHECK struct error *file_copy(struct copy_job *job, int from, int to);

#endif
