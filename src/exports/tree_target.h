/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the entries of a manifest in a directory. Names in a manifest are not trusted: nothing is
 * made outside of the directory, and no symbolic link is followed.
 */
#ifndef EXPORTS_TREE_TARGET_H
#define EXPORTS_TREE_TARGET_H

#include <sys/types.h>

#include "exports/chunk_cache.h"
#include "exports/tree_manifest.h"

/* Opens a directory below the root; "" is the root. */
MUST_CHECK struct error *tree_target_open(int root, const char *path, int *out);

/* Makes a directory that nobody else may read; its parent is there. */
MUST_CHECK struct error *tree_target_make_directory(int root, const char *path);

/* Gives the directory its metadata, when everything in it has been made. */
MUST_CHECK struct error *tree_target_finish_directory(int root, const struct tree_entry *entry);

/* Makes anything else; what has that name is replaced. `parts` is space for a list. */
MUST_CHECK struct error *tree_target_make(int directory, const struct tree_entry *entry,
                                          struct chunk_cache *chunks, struct repository *repository,
                                          struct tree_part *parts);

/* Makes another name of a file at a path below the root. */
MUST_CHECK struct error *tree_target_link(int root, const char *path, int directory,
                                          const char *name);

/* Security labels belong to the host, and properties of btrfs mean nothing elsewhere. */
bool tree_target_may_lose(const char *attribute);

/* xfs shows access lists in a form of its own besides the common one. */
bool tree_target_is_repeated(const char *attribute);

enum tree_kind tree_target_kind(mode_t mode);

#endif
