/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of a tree: entries in the order of their keys, in chunks.
 *
 *     root     the nodes: first key, id
 *     node     the leaves: first key, id
 *     leaf     the ids of chunks, the directory that it begins in, entries
 *     bundle   the contents of small files, one after the other
 *     list     parts of a large file
 *
 * Where a leaf, a node or a bundle ends depends on names only, not on what was exported before. So
 * a part of the tree that is as before gives the same chunks.
 */
#ifndef EXPORTS_TREE_MANIFEST_H
#define EXPORTS_TREE_MANIFEST_H

#include "exports/tree_entry.h"
#include "exports/varint.h"

/* What a leaf, a node or a manifest has. */
struct tree_sum {
    uint64_t entries; /* children do not count */
    uint64_t bytes;   /* of files */
};

/* ---- writing: tree_writer.c ---- */

struct tree_writer;

struct tree_writer *tree_writer_new(struct repository_writer *chunks);
/* NULL is fine. */
void tree_writer_free(struct tree_writer *writer);

/* Adds an entry of the directory, or the directory itself. In the order of keys. */
MUST_CHECK struct error *tree_writer_add(struct tree_writer *writer, const char *directory,
                                         const struct tree_entry *entry);

/* The same for a file with these contents, less than TREE_SMALL_FILE. */
MUST_CHECK struct error *tree_writer_add_small(struct tree_writer *writer, const char *directory,
                                               const struct tree_entry *entry, const void *bytes);

/* Whether the next entry begins a leaf. */
bool tree_writer_is_between_leaves(const struct tree_writer *writer);

/* Adds a leaf of another manifest, which begins with this key, between leaves. */
MUST_CHECK struct error *tree_writer_add_leaf(struct tree_writer *writer, const void *key,
                                              size_t key_size, const struct repository_id *id,
                                              const struct tree_sum *sum);

/* Of everything that was added so far. */
struct tree_sum tree_writer_sum(const struct tree_writer *writer);

/*
 * Between leaves: the manifest so far, for tree_writer_resume; its chunks are put, not flushed.
 */
MUST_CHECK struct error *tree_writer_save(struct tree_writer *writer, struct repository_id *root);
MUST_CHECK struct error *tree_writer_finish(struct tree_writer *writer, struct repository_id *root);

/*
 * Continues what was saved: everything up to the last key is there. `*is_there` is false if the
 * repository has not kept all of it; then the writer is as new.
 */
MUST_CHECK struct error *tree_writer_resume(struct tree_writer *writer,
                                            struct repository *repository,
                                            const struct repository_id *root,
                                            struct buffer *last_key, bool *is_there);

/* ---- reading: tree_reader.c ---- */

/* The leaves of a manifest, in order. */
struct tree_leaves {
    struct repository *repository;
    uint8_t *root, *node; /* chunks */
    struct varint_reader nodes, leaves;
    uint64_t nodes_left, leaves_left;
    /* the current one, or the end */
    bool has_leaf;
    struct repository_id id, node_id;
    const char *key; /* in the node */
    size_t key_size;
    struct tree_sum sum;
};

/* At the first leaf. DATA_LOSS for what is no manifest. */
MUST_CHECK struct error *tree_leaves_open(struct tree_leaves *leaves, struct repository *repository,
                                          const struct repository_id *root);
MUST_CHECK struct error *tree_leaves_next(struct tree_leaves *leaves);
void tree_leaves_close(struct tree_leaves *leaves);

/* One leaf. */
struct tree_leaf {
    uint8_t *bytes; /* a chunk; kept for the next leaf */
    struct repository_id *ids;
    size_t id_count;
    struct varint_reader in;
    uint64_t entries_left;
    struct tree_part *parts;
    char directory[TREE_PATH_MAX + 1]; /* of the current entry */
    struct buffer key;                 /* of the current entry */
    struct tree_entry entry;
    bool has_entry;
};

/* Before the first entry. */
MUST_CHECK struct error *tree_leaf_load(struct tree_leaf *leaf, struct repository *repository,
                                        const struct repository_id *id);
/* The same of bytes in memory. */
MUST_CHECK struct error *tree_leaf_read(struct tree_leaf *leaf, const void *bytes, size_t size);
/* The next entry; `has_entry` is false at the end. Keys ascend, or it is DATA_LOSS. */
MUST_CHECK struct error *tree_leaf_next(struct tree_leaf *leaf);
void tree_leaf_close(struct tree_leaf *leaf);

/* The parts of a list; `parts` has TREE_PARTS_MAX. */
MUST_CHECK struct error *tree_list_load(struct repository *repository,
                                        const struct repository_id *id, struct tree_part *parts,
                                        size_t *count, uint64_t *size);
/* Puts a list. */
MUST_CHECK struct error *tree_list_put(struct repository_writer *writer,
                                       const struct tree_part *parts, size_t count,
                                       struct repository_id *id);

/* ---- both ---- */

#define TREE_VERSION 1
enum tree_level {
    TREE_LEVEL_LEAF = 0,
    TREE_LEVEL_NODE = 1,
    TREE_LEVEL_ROOT = 2,
    TREE_LEVEL_LIST = 3
};

#define TREE_INDEX_KEY_MAX (TREE_PATH_MAX + TREE_NAME_MAX + 2)

#endif
