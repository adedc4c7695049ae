/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a copy: a temporary copy of it, or the volume itself. See cross_copy_work.h. */
#ifndef CONNECTIONS_COPY_CROSS_COPY_SOURCE_H
#define CONNECTIONS_COPY_CROSS_COPY_SOURCE_H

#include "connections/copy/cross_copy_run.h"

/*
 * Makes the temporary copy, or prepares to read the volume itself. `was_begun`: an earlier run may
 * have attached it. Before cross_copy_source_attach.
 */
MUST_CHECK struct error *cross_copy_source_find(struct cross_copy_run *run, bool was_begun,
                                                const struct progress *progress);

MUST_CHECK struct error *cross_copy_source_attach(struct cross_copy_run *run, const char **path);

/* Leaves attached what somebody else may use, and keeps the temporary copy. Idempotent. */
MUST_CHECK struct error *cross_copy_source_detach(struct cross_copy_run *run);

#endif
