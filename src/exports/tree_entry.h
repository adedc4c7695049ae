/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of a tree's manifest, and their order.
 *
 * The manifest has a block for each directory: its own entry (with its path below the root; "" is
 * the root), then those of what is in it, by the bytes of their names. Blocks are in the order of
 * a walk that visits a directory before what is below it, by name. So what is below a directory
 * follows it without gaps. A subdirectory stands twice: as a child (name and inode) in the block of
 * its parent, and as the directory that begins its own block.
 *
 * All of that is the order of keys: the path of the directory with NUL for '/', two NULs, and the
 * name, compared by memcmp.
 */
#ifndef EXPORTS_TREE_ENTRY_H
#define EXPORTS_TREE_ENTRY_H

#include "base/buffer.h"
#include "base/error.h"
#include "repository/repository.h"

#define TREE_PATH_MAX 4095u
#define TREE_NAME_MAX 255u
#define TREE_PARTS_MAX 8192u           /* of an entry, and of a list */
#define TREE_ATTRIBUTES_MAX (1u << 20) /* bytes of all extended attributes of an entry */
#define TREE_SMALL_FILE (128u << 10)   /* smaller ones are put together in bundles */

enum tree_kind {
    TREE_DIRECTORY = 'D',
    TREE_CHILD = 'd',
    TREE_FILE = 'F',
    TREE_SYMLINK = 'L',
    TREE_BLOCK = 'B',
    TREE_CHARACTER = 'C',
    TREE_FIFO = 'P',
    TREE_SOCKET = 'S',
};

enum tree_part_kind {
    TREE_HOLE = 0,
    TREE_DATA = 1, /* bytes of a chunk, from an offset on */
    TREE_LIST = 2, /* a chunk with parts that are holes and data */
    TREE_OPEN = 3, /* data of the chunk tree_ids.open; written as data */
};

/* A range of a file's contents. Parts follow each other without gaps. */
struct tree_part {
    enum tree_part_kind kind;
    uint64_t size;
    uint64_t offset; /* of data, in the chunk */
    struct repository_id id;
};

struct tree_entry {
    enum tree_kind kind;
    const char *name; /* of a directory its path */
    size_t name_size;
    uint64_t inode;
    /* The rest is not there for a child. */
    uint32_t mode; /* 07777 */
    uint32_t user, group;
    int64_t changed_s, modified_s; /* ctime, mtime */
    uint32_t changed_ns, modified_ns;
    uint64_t links;            /* names of the inode; 1 for directories */
    const uint8_t *attributes; /* extended: pairs of texts, encoded as in the manifest */
    size_t attributes_size;
    const char *target; /* of a symbolic link */
    size_t target_size;
    uint64_t device; /* of a device */
    uint64_t size;   /* of a file */
    const struct tree_part *parts;
    size_t part_count;
};

/* Replaces the key. */
void tree_entry_key(struct buffer *key, const char *directory, const char *name);
int tree_entry_compare(const void *a, size_t a_size, const void *b, size_t b_size);

/* The first key behind the directory and everything below it. */
void tree_entry_end_key(struct buffer *key, const char *directory);

/* Splits a key. False if it is none. */
bool tree_entry_read_key(const void *key, size_t size, char directory[TREE_PATH_MAX + 1],
                         char name[TREE_NAME_MAX + 1]);

/* Whether the path leads nowhere but down: no "", "." or ".." in it, no '/' at its ends. */
bool tree_entry_is_path(const char *path, size_t size);
bool tree_entry_is_name(const char *name, size_t size);

/* Ids that a leaf refers to by their index. */
struct tree_ids {
    struct repository_id *ids;
    size_t count, capacity;
    size_t open; /* the index of the chunk that is not put yet */
};

/* The index of a new id, which is zeros until the caller sets it. */
size_t tree_ids_reserve(struct tree_ids *ids);
/* The index of the id, which is added unless it is one of the last. */
size_t tree_ids_add(struct tree_ids *ids, const struct repository_id *id);
void tree_ids_clear(struct tree_ids *ids);

void tree_entry_encode(struct buffer *out, struct tree_ids *ids, const struct tree_entry *entry);
void tree_parts_encode(struct buffer *out, struct tree_ids *ids, const struct tree_part *parts,
                       size_t count);

struct varint_reader;

/*
 * Reads the next entry. Texts stay in the bytes that are read; `parts` has TREE_PARTS_MAX. A false
 * result, like in->is_bad, is a damaged manifest.
 */
bool tree_entry_decode(struct varint_reader *in, const struct repository_id *ids, size_t id_count,
                       struct tree_part *parts, struct tree_entry *out);
bool tree_parts_decode(struct varint_reader *in, const struct repository_id *ids, size_t id_count,
                       bool allows_lists, struct tree_part *parts, size_t *count, uint64_t *size);

/* The next pair of extended attributes; false at the end. */
bool tree_attributes_next(struct varint_reader *in, const char **name, const uint8_t **value,
                          size_t *size);

#endif
