/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads small files of a directory before they are exported, several at a time, so that their
 * contents are in memory then. A snapshot shares nothing in memory with its volume.
 */
#ifndef EXPORTS_TREE_AHEAD_H
#define EXPORTS_TREE_AHEAD_H

#include "exports/tree_source.h"

struct tree_ahead;

/* NULL if no thread can be started: nothing is read ahead then. All functions accept it. */
struct tree_ahead *tree_ahead_new(void);
void tree_ahead_free(struct tree_ahead *ahead);

/* From now on, reads the entries of this directory. Both must stay until tree_ahead_end. */
void tree_ahead_begin(struct tree_ahead *ahead, int directory, const struct tree_listing *listing);
/* The entry that is being exported. */
void tree_ahead_move(struct tree_ahead *ahead, size_t index);
void tree_ahead_end(struct tree_ahead *ahead);

#endif
