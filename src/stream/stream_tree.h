/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory that a stream is applied to. Paths come from a peer. They are resolved below the
 * root, through directories only: never through a symbolic link, a ".." or a mount. The
 * directories and the file that were used last stay open, so that few paths need a look-up.
 *
 * Nothing but the receiver changes the tree meanwhile.
 */
#ifndef STREAM_STREAM_TREE_H
#define STREAM_STREAM_TREE_H

#include <limits.h>
#include <stdbool.h>

#include "stream/stream_command.h"

#define STREAM_TREE_DIRECTORIES 8u

struct stream_directory {
    char *path; /* NULL: unused */
    size_t path_size;
    int fd;
    bool has_default_acl; /* what is made in it gets an access list */
    uint64_t used_at;
};

/* An open regular file. */
struct stream_file {
    char *path; /* NULL: none */
    size_t path_size;
    int fd;
    uint64_t inode;
};

struct stream_tree {
    struct stream_directory root;
    struct stream_directory directories[STREAM_TREE_DIRECTORIES];
    struct stream_file file;
    uint64_t uses; /* counts, for used_at */
};

/* An entry of a directory: exists or not. */
struct stream_entry {
    int directory;
    bool has_default_acl; /* the directory has one */
    char name[STREAM_NAME_MAX + 1];
};

/* Keeps its own descriptor of the root. */
MUST_CHECK struct error *stream_tree_open(struct stream_tree *tree, int root);
void stream_tree_close(struct stream_tree *tree);

/*
 * The directory that holds the path, and its name there. The descriptor is the tree's: valid until
 * the next call but one. NOT_FOUND if a directory on the way is missing.
 */
MUST_CHECK struct error *stream_tree_find(struct stream_tree *tree, struct stream_text path,
                                          struct stream_entry *out);

/* Opens the regular file for writing, unless it is open; any other kind of file is refused. */
MUST_CHECK struct error *stream_tree_open_file(struct stream_tree *tree, struct stream_text path);

/* A descriptor for reading, which the caller closes. */
MUST_CHECK struct error *stream_tree_open_source(struct stream_tree *tree, struct stream_text path,
                                                 int *out);

/* A descriptor of the directory or of the open file with this path, or -1 if it is neither. */
int stream_tree_find_open(struct stream_tree *tree, struct stream_text path);

/* A new file becomes the open one. Takes the descriptor. */
MUST_CHECK struct error *stream_tree_keep_file(struct stream_tree *tree, struct stream_text path,
                                               int fd);

/* A file has got another name, or lost one: the path may be that of another file now. */
void stream_tree_close_file(struct stream_tree *tree);

/* The names of directories have changed: nothing stays open. */
void stream_tree_forget(struct stream_tree *tree);

#endif
