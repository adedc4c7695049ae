/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears complete or not at all, even after a crash: written under a temporary name in
 * the same directory, made durable, then renamed. Several files that belong together are all
 * written first, so that only the renames are between the old set and the new one.
 */
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct new_file {
    char *path;      /* the final path */
    char *temporary; /* its name until then; NULL: nothing was written, or it has been renamed */
};

/* The mode is set exactly, whatever the umask is. `out` is filled even on error. */
MUST_CHECK struct error *new_file_write(struct new_file *out, const char *path, mode_t mode,
                                        const void *bytes, size_t size);

/* ALREADY_EXISTS if the file exists and `replaces` is false. Durable when it returns. */
MUST_CHECK struct error *new_file_put(struct new_file *file, bool replaces);

/* Removes the temporary file, if any. For `struct new_file file AUTO(new_file_clear) = {0}`. */
void new_file_clear(struct new_file *file);

#endif
