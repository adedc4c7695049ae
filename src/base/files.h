/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for descriptors and small files. */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stddef.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

/* For `int fd AUTO(files_close) = open(...)`; ignores -1. */
void files_close(int *fd);

/* Takes the descriptor out of its variable, which then does not close it. */
int files_keep(int *fd);

/*
 * Opens a path that stays below `directory`, whatever is there: follows no symbolic link, no "..",
 * and enters no mount. -1 with errno as open(2): ELOOP for a link, EXDEV for a mount.
 */
int files_open_below(int directory, const char *path, int flags);

/* The same for reading, without a change of the time of access where that is allowed. */
int files_open_quietly(int directory, const char *path, int flags);

/* Opens a directory without following a link; -1 as openat(2). */
int files_open_directory(int parent, const char *name);

/* Opens the directory; makes it first if it is missing. */
MUST_CHECK struct error *files_make_path(const char *path);

/* The same below `parent`; `*out` is its descriptor. */
MUST_CHECK struct error *files_make_directory(int parent, const char *name, int *out);

/*
 * Replaces the contents of the file in one step: readers see the old or the new ones, also after a
 * power failure.
 */
MUST_CHECK struct error *files_replace(int directory, const char *name, const void *bytes,
                                       size_t size);

/* Reads the whole file. OUT_OF_RANGE if it has more than `room` bytes. */
MUST_CHECK struct error *files_read(int directory, const char *name, void *bytes, size_t room,
                                    size_t *size);

/*
 * The same for a path, following links, of a regular file. The buffer gets one block, which is
 * never moved: a caller that wipes it leaves no copy behind.
 */
MUST_CHECK struct error *files_read_all(const char *path, size_t limit, struct buffer *out);

/* Makes everything that was written to the descriptor's file system durable. */
MUST_CHECK struct error *files_sync(int fd);

/*
 * The first line of a file in /sys or /proc, without the newline. Returns 0 or the value of errno.
 */
int files_read_line(const char *path, char *line, size_t size);

#endif
