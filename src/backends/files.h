/* SPDX-License-Identifier: Apache-2.0 */
/* Small things about descriptors and files that the back ends share. */
#ifndef BACKENDS_FILES_H
#define BACKENDS_FILES_H

#include <stddef.h>

#include "base/attributes.h"
#include "base/error.h"

/* For `int fd AUTO(files_close) = open(...)`; -1 is no descriptor. */
void files_close(int *fd);

/* The descriptor, which its variable does not close any more. */
int files_keep(int *fd);

/*
 * Opens a path that stays below `directory` whatever anybody has put there: no symbolic link on the
 * way or at the end, no "..", and nothing that is mounted inside. -1 with errno as open(2): ELOOP
 * for a link, EXDEV for a mount.
 */
int files_open_below(int directory, const char *path, int flags);

/* Gives -1 like openat(2) of a directory, without following a link. */
int files_open_directory(int parent, const char *name);

/* Makes the directory if it is missing. */
MUST_CHECK struct error *files_make_path(const char *path);

/* Makes the directory if it is missing, and opens it. */
MUST_CHECK struct error *files_make_directory(int parent, const char *name, int *out);

/*
 * The file becomes these bytes in one step: readers see the old ones or all of the new ones, and so
 * they do after a power cut.
 */
MUST_CHECK struct error *files_replace(int directory, const char *name, const void *bytes,
                                       size_t size);

/* At most `room` bytes; a longer file is OUT_OF_RANGE, none is NOT_FOUND. */
MUST_CHECK struct error *files_read(int directory, const char *name, void *bytes, size_t room,
                                    size_t *size);

/*
 * Everything that was written to the file system that the descriptor is on outlasts a power
 * failure.
 */
MUST_CHECK struct error *files_sync(int fd);

/*
 * The first line of a file of /sys or /proc, without its end. 0 is success, else the value of
 * errno.
 */
int files_read_line(const char *path, char *line, size_t size);

#endif
