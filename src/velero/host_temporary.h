/* SPDX-License-Identifier: Apache-2.0 */
/* A host's directory for temporary files, below $TMPDIR or /tmp. */
#ifndef VELERO_HOST_TEMPORARY_H
#define VELERO_HOST_TEMPORARY_H

#include "base/error.h"
#include "base/log.h"

#define HOST_TEMPORARY_MAX_BYTES 96

/* Initialized to {0} it is none. */
struct host_temporary {
    char path[HOST_TEMPORARY_MAX_BYTES]; /* short enough for sockets in a directory in it */
    int lock;
};

/*
 * Makes the directory, which only its owner may enter, and removes those that hosts of the same
 * user have left behind when they were killed.
 */
MUST_CHECK struct error *host_temporary_make(struct host_temporary *out, const struct log *log);

/* Removes it with everything in it. A failure is logged. */
void host_temporary_remove(struct host_temporary *temporary, const struct log *log);

#endif
