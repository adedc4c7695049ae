/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory trees whose contents nobody has checked: names, links and depth are whatever the user
 * of a volume has made of them. Nothing here follows a symbolic link, crosses into a mount, or uses
 * more stack or descriptors for a deeper tree.
 */
#ifndef BACKENDS_TREE_H
#define BACKENDS_TREE_H

#include <sys/types.h>

#include "backends/file_copy.h"

struct tree_size {
    uint64_t allocated_bytes;
    uint64_t inodes; /* without the top */
    /*
     * Of everything, the top included: the latest ctime, and a number that is another when any
     * ctime or the set of files is another.
     */
    int64_t changed_ns;
    uint64_t fingerprint;
};

/*
 * Fills the empty directory `to` with everything that is in `from`: modes, owners, times, extended
 * attributes (access lists and capabilities among them), hard links, symbolic links, devices,
 * holes; and gives it the metadata of `from` itself.
 *
 * A job that goes on finds part of that there already: a file of the same size, time, owner and
 * mode is taken to be done, all else is made anew.
 *
 * A tree that changes meanwhile is copied as it is met. FAILED_PRECONDITION for something mounted
 * inside, or a tree deeper than a path can name.
 */
MUST_CHECK struct error *tree_copy(struct copy_job *job, int from, int to);

/* Counts what a file with several names has once. */
MUST_CHECK struct error *tree_measure(int directory, struct tree_size *out);

/*
 * The group may read and write everything, and owns what is made there later. A tree whose top is
 * so already is taken to be so all the way down.
 */
MUST_CHECK struct error *tree_give(int directory, gid_t group);

/* Removes name and everything below, of any depth, sealed or not. Not being there is success. */
MUST_CHECK struct error *tree_remove(int parent, const char *name);

/*
 * The file or directory cannot be changed any more, or can again; false where that is not possible.
 */
bool tree_seal(int fd, bool sealed);

/*
 * Seals every file and directory of a copy, where the file system and our privileges allow that. To
 * be called when the copy is durable: it would be slow before.
 */
MUST_CHECK struct error *tree_seal_all(struct copy_job *job, int top);

#endif
