/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk with a volatile write cache.
 *
 * A write is answered as soon as it is in memory. A flush, or a write with FUA, brings it into the
 * image. disk_cut is the power cut: the mode says what becomes of the rest.
 *
 *     drop     all of it is lost
 *     sectors  each sector of 512 bytes is kept or lost, by chance
 *     blocks   each block of 4096 bytes is kept or lost, by chance
 *     keep     all of it is kept: an orderly stop
 *
 * A lying disk answers flushes and FUA, and does nothing. It shows that the checks notice a loss.
 *
 * Trim and write-zeroes are writes of zeros, and as volatile; a hole of the image stays one. A block
 * that was written twice since the last flush is lost or kept in its latest state, never in the one
 * between. For one thread: a flush and a cut happen as a whole. An error of the image ends the
 * program.
 */
#ifndef TESTS_POWER_VOLATILE_DISK_H
#define TESTS_POWER_VOLATILE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_SECTOR_BYTES 512u
#define DISK_BLOCK_BYTES 4096u

struct disk;

struct disk *disk_open(const char *image_path, bool lies);
uint64_t disk_size(const struct disk *disk);

/* Writes begin and end on sectors, within the disk: disk_holds says whether they do. */
bool disk_holds(const struct disk *disk, uint64_t offset, uint64_t count);
void disk_read(struct disk *disk, void *to, uint64_t offset, uint64_t count);
void disk_write(struct disk *disk, const void *from, uint64_t offset, uint64_t count);
void disk_zero(struct disk *disk, uint64_t offset, uint64_t count);
/* What was written there is durable; what is beside it is not. */
void disk_write_through(struct disk *disk, uint64_t offset, uint64_t count);
void disk_flush(struct disk *disk);

/* Appends one line of JSON with what was lost to `statistics_path`. The image changes no more:
   later writes are answered from memory, so that the disk can be unmounted without errors. */
void disk_cut(struct disk *disk, const char *mode, unsigned seed, const char *statistics_path);

#endif
