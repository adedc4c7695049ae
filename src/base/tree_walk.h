/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a tree without recursion: directories are queued by their path below the root and opened
 * from there, so that depth costs neither stack nor descriptors. Queued directories and files with
 * several names are stored by name, with one path for all that are in the same directory, because
 * the user of the volume determines how many there are. The times of access stay as they are.
 */
#ifndef BASE_TREE_WALK_H
#define BASE_TREE_WALK_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/* The next directory: to be read, or, when everything below it is done, to be left. */
struct tree_step {
    bool is_leaving;
    char path[];
};

struct tree_walk {
    int top;
    struct tree_waiting *waiting;
    struct tree_directory *directory; /* of the last entry */
    void *links;                      /* tsearch: the files with several names found so far */
    char *link_path;                  /* of the last one found again */
};

void tree_walk_push(struct tree_walk *walk, const char *directory, const char *name,
                    bool is_leaving);
/* The caller frees it. NULL: the walk has ended. */
struct tree_step *tree_walk_pop(struct tree_walk *walk);
void tree_walk_clear(struct tree_walk *walk);

/* Opens a directory of the walk. `*out` is NULL if it has been removed meanwhile. */
MUST_CHECK struct error *tree_walk_open(const struct tree_walk *walk, const char *path, DIR **out);

/* The next name other than "." and ".."; NULL at the end or with an error. */
const char *tree_walk_read(DIR *directory, struct error **error);

/*
 * The path where the file was found before, valid until the next call; or NULL, and the file is
 * remembered under this path.
 */
const char *tree_walk_find_link(struct tree_walk *walk, const struct stat *status,
                                const char *directory, const char *name);

#endif
