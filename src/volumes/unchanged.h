/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory trees that are copied file by file while somebody may write to them. The copy is of one
 * instant only if nothing changes meanwhile. Every change of a file, its name or its owner gives
 * the file or its directory a new ctime; a fingerprint of all of them is compared before and after.
 */
#ifndef VOLUMES_UNCHANGED_H
#define VOLUMES_UNCHANGED_H

#include "volumes/rows.h"

/* The state of the tree before the copy. */
struct unchanged {
    char path[4096];
    uint64_t fingerprint;
};

/*
 * Called when the copy is requested, before the answer: later writes are not in the copy. If the
 * volume is in use, waits until nothing has changed for a moment, for 2 s at most.
 * FAILED_PRECONDITION: the tree keeps changing.
 */
MUST_CHECK struct error *unchanged_begin(struct engine *engine, const struct data *tree,
                                         struct unchanged *out);

/* Called after the copy: whether the tree is unchanged. */
MUST_CHECK struct error *unchanged_check(const struct unchanged *before, bool *is_same);

/* FAILED_PRECONDITION, with advice. */
struct error *unchanged_refuse(const struct data *tree);

#endif
