/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a tree without recursion: directories wait on a list by their path below the top and are
 * opened from there, so that depth costs neither stack nor descriptors. What waits, and files that
 * have several names, are remembered by their names beside one path for all that are in the same
 * directory: how many there are is in the hands of the volume's user. Internal to tree_*.c.
 */
#ifndef BACKENDS_TREE_WALK_H
#define BACKENDS_TREE_WALK_H

#include <dirent.h>
#include <sys/stat.h>

#include "backends/tree.h"

/* A directory whose turn it is: to be read, or (all below it being done) to be left. */
struct tree_step {
    bool is_leaving;
    char path[];
};

struct tree_walk {
    int top;
    struct tree_waiting *waiting;
    struct tree_directory *directory; /* the last that something was in */
    void *links;                      /* of tsearch: the files with several names that were met */
    char *link_path;                  /* of the last that was met again */
};

void tree_walk_push(struct tree_walk *walk, const char *directory, const char *name,
                    bool is_leaving);
/* The caller frees it. NULL: the walk is done. */
struct tree_step *tree_walk_pop(struct tree_walk *walk);
void tree_walk_clear(struct tree_walk *walk);

/* A directory of the walk. `*out` is NULL if it is gone meanwhile. */
MUST_CHECK struct error *tree_walk_open(const struct tree_walk *walk, const char *path, DIR **out);

/* The next name that is not "." or ".."; NULL at the end, with an error or without. */
const char *tree_walk_read(DIR *directory, struct error **error);

/*
 * Where the file was met before, good until the next question; or NULL, then it is remembered under
 * this path.
 */
const char *tree_walk_find_link(struct tree_walk *walk, const struct stat *status,
                                const char *directory, const char *name);

#endif
