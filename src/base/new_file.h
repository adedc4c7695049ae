/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears whole or not at all, also after a crash: written beside its place under
 * another name, made durable, then moved there. Several that belong together are all written first,
 * so that nothing but the moves stands between the old set and the new one.
 */
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct new_file {
    char *path;      /* its place */
    char *temporary; /* where it is until then; NULL: nothing was written, or it is in its place */
};

/* Exactly this mode, whatever the umask is. `out` is filled also with an error. */
MUST_CHECK struct error *new_file_write(struct new_file *out, const char *path, mode_t mode,
                                        const void *bytes, size_t size);

/* ALREADY_EXISTS if something is there and is not to be replaced. Durable when it returns. */
MUST_CHECK struct error *new_file_put(struct new_file *file, bool replaces);

/* Removes what is not in its place. For `struct new_file file AUTO(new_file_clear) = {0}`. */
void new_file_clear(struct new_file *file);

#endif
