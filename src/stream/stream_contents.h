/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that change the contents of files. Each sets bytes to values that do not depend on
 * what they were, so all of them can be repeated in order. Clones depend on another file, or on
 * another part of the same; that is the caller's business.
 */
#ifndef STREAM_STREAM_CONTENTS_H
#define STREAM_STREAM_CONTENTS_H

#include <sys/uio.h>

#include "stream/stream_tree.h"

#define STREAM_CONTENTS_PARTS 64u

/* Writes that follow each other in the open file, collected to be one. */
struct stream_contents {
    struct stream_tree *tree;
    uint64_t max_file_bytes; /* no file may become larger */
    struct iovec parts[STREAM_CONTENTS_PARTS];
    unsigned count;
    uint64_t start; /* in the file */
    uint64_t size;
};

/* The bytes that the command changes. OUT_OF_RANGE if the file would be too large. */
struct stream_range {
    uint64_t start;
    uint64_t end;
};
MUST_CHECK struct error *stream_contents_find_range(const struct stream_contents *contents,
                                                    const struct stream_command *command,
                                                    struct stream_range *out);

/*
 * write. The file must be open. The bytes are written at the latest by stream_contents_flush and
 * must be there until then.
 */
MUST_CHECK struct error *stream_contents_write(struct stream_contents *contents,
                                               const struct stream_command *command);
MUST_CHECK struct error *stream_contents_flush(struct stream_contents *contents);

/* For those below, nothing is collected: the caller has flushed. */

/* clone: from an open file. Copies where the file system does not share extents. */
MUST_CHECK struct error *stream_contents_clone(struct stream_contents *contents,
                                               const struct stream_command *command, int source);
/* truncate and fallocate. The file must be open. */
MUST_CHECK struct error *stream_contents_truncate(struct stream_contents *contents,
                                                  const struct stream_command *command);
MUST_CHECK struct error *stream_contents_punch(struct stream_contents *contents,
                                               const struct stream_command *command);

#endif
