/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for the pool on the disk below it. Internal to pool.c.
 *
 * The pool is a sparse file: its btrfs has free blocks that the disk may no longer have, because
 * others fill it too. If data cannot be written to the disk, the writer gets an error; if metadata
 * cannot, the btrfs becomes read-only. Therefore
 *
 *   - blocks for all metadata are allocated on the disk before anything is written to them (the
 *     kernel discards only data, so they stay allocated), and
 *   - a file in the pool, `reserve`, takes up the space that the disk can no longer give: the
 *     pool is full, and its writers are told, before the disk is full. The file has no blocks on
 *     the disk. It grows and shrinks with the free space there.
 */
#ifndef BACKENDS_POOL_ROOM_H
#define BACKENDS_POOL_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * What the disk can give to the pool: all free space except a fiftieth of the disk, 4 GiB at most.
 */
MUST_CHECK struct error *pool_room_on_disk(int directory, uint64_t *bytes);

/*
 * Allocates blocks on the disk for the metadata of the btrfs at `root`, for chunks from
 * `*next_chunk` on, which it advances.
 */
MUST_CHECK struct error *pool_room_take_metadata(int root, const char *image, uint64_t *next_chunk);

/* Gives the reserve file of the pool at `root` the size that the disk of `directory` requires. */
MUST_CHECK struct error *pool_room_set_reserve(int root, int directory);

/* Removes the reserve file, if there is one. Its space can be used when this returns. */
MUST_CHECK struct error *pool_room_drop_reserve(int root);

/* Whether there is a reserve file: the disk limits the pool. */
bool pool_room_has_reserve(int root);

#endif
