/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which snapshots of a volume were exported, kept beside the tree of the volume.
 *
 * A repository may have exports of a past that is no longer that of the file system: the machine or
 * its disk was set back to an earlier state. The generations count up again from there, so they do
 * not tell. What is kept here was set back, too.
 */
#ifndef BACKENDS_BTRFS_EXPORTED_H
#define BACKENDS_BTRFS_EXPORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BTRFS_EXPORTED_MOST 32u

/* Their UUIDs, the newest last. */
struct btrfs_exported {
    uint8_t snapshots[BTRFS_EXPORTED_MOST][16];
    size_t count;
};

/* `tree` is the directory of the volume. */
MUST_CHECK struct error *btrfs_exported_read(int tree, struct btrfs_exported *out);
bool btrfs_exported_has(const struct btrfs_exported *exported, const uint8_t snapshot[16]);

/* Adds one, in the place of the oldest if there are too many. Durable. */
MUST_CHECK struct error *btrfs_exported_add(int tree, const uint8_t snapshot[16]);

#endif
