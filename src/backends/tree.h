/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Untrusted directory trees: names, links and depth are up to the user of a volume. Nothing here
 * follows a symbolic link, enters a mount, or needs more stack or descriptors for a deeper tree.
 */
#ifndef BACKENDS_TREE_H
#define BACKENDS_TREE_H

#include <sys/types.h>

#include "backends/file_copy.h"

struct tree_size {
    uint64_t allocated_bytes;
    uint64_t inodes; /* without the root */
    /*
     * Of everything, the root included: the latest ctime, and a number that changes when any ctime
     * or the set of files changes.
     */
    int64_t changed_ns;
    uint64_t fingerprint;
};

/*
 * Fills the empty directory `to` with everything in `from`: modes, owners, times, extended
 * attributes (including access lists and capabilities), hard links, symbolic links, devices, holes.
 * Gives it the metadata of `from` itself.
 *
 * A job that continues an earlier attempt keeps files of the same size, time, owner and mode, and
 * makes everything else again.
 *
 * If the tree changes meanwhile, each entry is copied as it is found. FAILED_PRECONDITION for a
 * mount inside, or a tree deeper than a path can name.
 */
MUST_CHECK struct error *tree_copy(struct copy_job *job, int from, int to);

/* Counts a file with several names once. */
MUST_CHECK struct error *tree_measure(int directory, struct tree_size *out);

/*
 * Lets the group read and write everything, and own what is created later. If the root of the tree
 * is so already, everything below is assumed to be.
 */
MUST_CHECK struct error *tree_give(int directory, gid_t group);

/*
 * Removes the entry and everything below it, at any depth, sealed or not. Success if it does not
 * exist.
 */
MUST_CHECK struct error *tree_remove(int parent, const char *name);

/* Makes the file or directory unchangeable, or changeable again; false if that is not possible. */
bool tree_seal(int fd, bool sealed);

/*
 * Seals every file and directory of a copy, if the file system and our privileges allow it. Called
 * when the copy is durable: it would be slow before.
 */
MUST_CHECK struct error *tree_seal_all(struct copy_job *job, int top);

#endif
