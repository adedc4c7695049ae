/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory trees that are copied file by file while somebody may write to them. The copy is of one
 * instant only if nothing has changed meanwhile: every change of a file, its name or its owner
 * gives it, or its directory, a new ctime, and all of them together are compared before and after.
 */
#ifndef VOLUMES_UNCHANGED_H
#define VOLUMES_UNCHANGED_H

#include "volumes/rows.h"

/* How the tree was. */
struct unchanged {
    char path[4096];
    uint64_t fingerprint;
};

/*
 * When the copy is asked for, before that is answered: what is written later is not in it. Where
 * the volume is in use it waits until nothing has changed for a moment, 2 s at most.
 * FAILED_PRECONDITION: somebody writes all the time.
 */
MUST_CHECK struct error *unchanged_begin(struct engine *engine, const struct data *tree,
                                         struct unchanged *out);

/* After it: whether the tree is as it was. */
MUST_CHECK struct error *unchanged_check(const struct unchanged *before, bool *is_same);

/* FAILED_PRECONDITION, with what can be done. */
struct error *unchanged_refuse(const struct data *tree);

#endif
