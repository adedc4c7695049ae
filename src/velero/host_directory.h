/* SPDX-License-Identifier: Apache-2.0 */
/* The programs in a plugin directory. */
#ifndef VELERO_HOST_DIRECTORY_H
#define VELERO_HOST_DIRECTORY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"

/*
 * The paths below the directory, at any depth, of all files that somebody may execute; sorted, in
 * the arena. Links to directories are not followed. FAILED_PRECONDITION: there are more than
 * `most`, or very many other files, so this is no plugin directory.
 */
MUST_CHECK struct error *host_directory_list(const char *directory, size_t most,
                                             const struct log *log, struct arena *arena,
                                             const char ***paths, size_t *count);

#endif
