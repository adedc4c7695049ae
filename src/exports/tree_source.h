/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory tree that is exported: its entries, and the contents of its files as chunks. Nobody
 * changes the tree meanwhile. Symbolic links are not followed, mounts not entered.
 */
#ifndef EXPORTS_TREE_SOURCE_H
#define EXPORTS_TREE_SOURCE_H

#include <stdbool.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "base/arena.h"
#include "exports/chunker.h"
#include "exports/tree_manifest.h"
#include "store/cache_db.h"

struct tree_counts {
    uint64_t files, directories;
    uint64_t bytes;      /* of all files, holes included */
    uint64_t bytes_read; /* from the tree */
};

/* The names of a directory. */
struct tree_name {
    const char *name;
    uint64_t inode;
    bool is_directory;
    bool is_file; /* a regular one */
};

/*
 * The names, sorted, and a part of them at a time: memory does not grow with the directory. For
 * `struct tree_listing listing AUTO(tree_listing_clear) = {0}`.
 */
struct tree_listing {
    struct arena arena;
    struct tree_name *names;
    size_t count, capacity; /* of this part */
    struct cache_db *all;   /* NULL: this part is all */
    struct cache_db_walk walk;
};

struct tree_source {
    int root;
    struct repository_writer *chunks;
    struct tree_writer *writer;
    const char *work_directory;
    const struct progress *progress;
    uint64_t expected_bytes;
    struct chunker chunker;
    struct cache_db *links; /* the contents of files with several names, by inode */
    struct tree_counts counts;
    /* the entry that is looked at */
    struct buffer attributes;
    char *attribute_names, *attribute_value;
    const char **sorted_names; /* in attribute_names */
    char target[TREE_PATH_MAX + 1];
    uint8_t *bytes; /* of a file */
    struct tree_part *parts;
    size_t part_count;
    struct tree_part *lists;
    size_t list_count;
};

struct tree_source_options {
    int root;
    struct repository *repository;
    struct repository_writer *chunks;
    struct tree_writer *writer;
    const char *work_directory; /* for temporary files */
    const struct progress *progress;
    uint64_t expected_bytes; /* a guess, for the progress */
};

MUST_CHECK struct error *tree_source_open(struct tree_source *source,
                                          const struct tree_source_options *options);
void tree_source_close(struct tree_source *source);

/* ---- tree_listing.c ---- */

/* Opens a directory and lists it. The first part is in `out`. */
MUST_CHECK struct error *tree_source_list(struct tree_source *source, const char *path, int *fd,
                                          struct tree_listing *out);
/* The next part, instead of the current one; of no names if there is none. */
MUST_CHECK struct error *tree_listing_next(struct tree_listing *listing);
void tree_listing_clear(struct tree_listing *listing);

/* ---- tree_source.c ---- */

/* Adds the directory itself, by its descriptor. */
MUST_CHECK struct error *tree_source_add_directory(struct tree_source *source, const char *path,
                                                   int fd);

/* Adds a subdirectory to its parent's block. */
MUST_CHECK struct error *tree_source_add_child(struct tree_source *source, const char *directory,
                                               const struct tree_name *name);

/*
 * Adds anything that is no directory. `old` (may be NULL) is the entry of an earlier export: if its
 * times are the same, and older than `trusted_s`, its contents are taken from there.
 */
MUST_CHECK struct error *tree_source_add(struct tree_source *source, const char *directory, int fd,
                                         const char *name, const struct tree_entry *old,
                                         int64_t trusted_s);

/* ---- tree_contents.c ---- */

/* CANCELLED if the work is to end. Reports how far it is. */
MUST_CHECK struct error *tree_source_check(struct tree_source *source);

/* Reads the contents of a file into source->parts. */
MUST_CHECK struct error *tree_contents_read(struct tree_source *source, int fd, const char *name,
                                            uint64_t size);

#endif
