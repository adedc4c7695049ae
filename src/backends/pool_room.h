/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for the pool on the disk below it. Internal to pool.c.
 *
 * The pool is a sparse file: its btrfs has free blocks that the disk may no longer have, because
 * others fill it too. A btrfs whose data does not reach the disk gives its writer an error; one
 * whose metadata does not reach it becomes read-only for good. So
 *
 * - the blocks of all metadata are taken from the disk before anything is written to them (the
 *   kernel discards data only, so they stay), and
 * - a file in the pool, `reserve`, takes up what the disk can no longer give: the pool is full, and
 *   says so to its writers, before the disk is. The file has no blocks on the disk. It grows and
 *   shrinks with the free space there.
 */
#ifndef BACKENDS_POOL_ROOM_H
#define BACKENDS_POOL_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * What the disk can give to the pool: all that is free but a fiftieth of the disk, or 4 GiB of a
 * large one.
 */
MUST_CHECK struct error *pool_room_on_disk(int directory, uint64_t *bytes);

/*
 * Takes blocks of the disk for the metadata of the btrfs at `root`, for chunks from `*next_chunk`
 * on, which it moves on.
 */
MUST_CHECK struct error *pool_room_take_metadata(int root, const char *image, uint64_t *next_chunk);

/*
 * Makes the reserve file of the pool at `root` as large as it must be for the disk that `directory`
 * is on.
 */
MUST_CHECK struct error *pool_room_set_reserve(int root, int directory);

/* There is a reserve file: the disk limits the pool. */
bool pool_room_has_reserve(int root);

#endif
