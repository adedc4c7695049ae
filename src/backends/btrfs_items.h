/* SPDX-License-Identifier: Apache-2.0 */
/* Reads items from the trees of a btrfs file system. Internal to btrfs*.c; needs root. */
#ifndef BACKENDS_BTRFS_ITEMS_H
#define BACKENDS_BTRFS_ITEMS_H

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#include "backends/backend.h"

#define BTRFS_ITEMS_BYTES (64u << 10)

/* The result of one ioctl. Large: on the heap. */
struct btrfs_items {
    unsigned given;
    size_t at;
    union {
        struct btrfs_ioctl_search_args_v2 arguments;
        char bytes[sizeof(struct btrfs_ioctl_search_args_v2) + BTRFS_ITEMS_BYTES];
    };
};

/*
 * The items from the key `min` up to `max`, of the tree with that number, or (0) of the subvolume
 * that fd is in.
 */
struct btrfs_range {
    uint64_t tree;
    struct btrfs_key min;
    struct btrfs_key max;
    uint64_t since; /* only items in blocks written at this generation or later; 0: all */
};

/* The next item and its key; NULL at the end of the result. Items are not aligned: use memcpy. */
const void *btrfs_items_next(struct btrfs_items *items, struct btrfs_ioctl_search_header *header);

/* Reads the first items of the range, as many as fit. */
MUST_CHECK struct error *btrfs_items_ask(struct btrfs_items *items, int fd,
                                         const struct btrfs_range *range);

/* Calls `take` for every item of the range. */
MUST_CHECK struct error *btrfs_items_each(
    int fd, struct btrfs_range range,
    void (*take)(void *context, const struct btrfs_ioctl_search_header *header, const void *item),
    void *context);

/*
 * Counts the inodes of the subvolume, without its root directory, and their data: 5 ms for 10,000
 * files. If there are more inodes than `most`, their number is DATA_USAGE_UNKNOWN, and that of
 * bytes 0.
 */
MUST_CHECK struct error *btrfs_items_count_inodes(int subvolume, uint64_t most, uint64_t *inodes,
                                                  uint64_t *bytes);

/* A reader of the extents of an image (see extents.h). */
struct extent_reader;
MUST_CHECK struct error *btrfs_items_open_extents(struct extent_reader *reader, int fd,
                                                  uint64_t offset);

#endif
