/* SPDX-License-Identifier: Apache-2.0 */
/* A disk with a volatile write cache: see volatile_disk.h. */
#include "volatile_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTORS_PER_BLOCK (DISK_BLOCK_BYTES / DISK_SECTOR_BYTES)

struct block {
    uint8_t dirty; /* a bit for each sector */
    uint8_t data[DISK_BLOCK_BYTES];
};

struct disk {
    int image;
    bool lies;
    uint64_t block_count;
    struct block **cache; /* by block number; NULL: as it is in the image */
    uint64_t *dirty_list; /* block numbers */
    size_t dirty_count;
    size_t dirty_room;
    uint64_t writes;
    uint64_t flushes;
};

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static void *
must_have(void *memory)
{
    if (!memory)
        die("memory");
    return memory;
}

/* ---- the image ---- */

struct disk *
disk_open(const char *image_path, bool lies)
{
    struct disk *disk = must_have(calloc(1, sizeof *disk));
    struct stat status;
    disk->lies = lies;
    disk->image = open(image_path, O_RDWR | O_CLOEXEC);
    if (disk->image < 0 || fstat(disk->image, &status) != 0)
        die(image_path);
    disk->block_count = (uint64_t)status.st_size / DISK_BLOCK_BYTES;
    disk->cache = must_have(calloc(disk->block_count, sizeof(struct block *)));
    return disk;
}

uint64_t
disk_size(const struct disk *disk)
{
    return disk->block_count * DISK_BLOCK_BYTES;
}

bool
disk_holds(const struct disk *disk, uint64_t offset, uint64_t count)
{
    uint64_t size = disk_size(disk);
    return offset % DISK_SECTOR_BYTES == 0 && count % DISK_SECTOR_BYTES == 0 && offset <= size &&
           count <= size - offset;
}

static void
read_image(struct disk *disk, void *to, uint64_t offset, size_t count)
{
    if (pread(disk->image, to, count, (off_t)offset) != (ssize_t)count)
        die("read the image");
}

static void
write_image(struct disk *disk, const void *from, uint64_t offset, size_t count)
{
    if (pwrite(disk->image, from, count, (off_t)offset) != (ssize_t)count)
        die("write the image");
}

/* ---- the cache ---- */

static struct block *
cache_block(struct disk *disk, uint64_t number)
{
    struct block *block = disk->cache[number];
    if (block)
        return block;
    block = must_have(malloc(sizeof *block));
    block->dirty = 0;
    read_image(disk, block->data, number * DISK_BLOCK_BYTES, DISK_BLOCK_BYTES);
    disk->cache[number] = block;
    return block;
}

static void
mark_dirty(struct disk *disk, uint64_t number, size_t start, size_t count)
{
    struct block *block = disk->cache[number];
    if (!block->dirty) {
        if (disk->dirty_count == disk->dirty_room) {
            disk->dirty_room = disk->dirty_room ? disk->dirty_room * 2 : 4096;
            disk->dirty_list =
                must_have(realloc(disk->dirty_list, disk->dirty_room * sizeof(uint64_t)));
        }
        disk->dirty_list[disk->dirty_count++] = number;
    }
    for (size_t at = start; at < start + count; at += DISK_SECTOR_BYTES)
        block->dirty |= (uint8_t)(1u << at / DISK_SECTOR_BYTES);
}

/* How much of `count` bytes from `offset` on is in the block of `offset`. */
static size_t
part_in_block(uint64_t offset, uint64_t count)
{
    size_t room = DISK_BLOCK_BYTES - offset % DISK_BLOCK_BYTES;
    return count < room ? (size_t)count : room;
}

void
disk_read(struct disk *disk, void *to, uint64_t offset, uint64_t count)
{
    uint8_t *out = to;
    for (size_t part; count; offset += part, out += part, count -= part) {
        part = part_in_block(offset, count);
        const struct block *block = disk->cache[offset / DISK_BLOCK_BYTES];
        if (block)
            memcpy(out, block->data + offset % DISK_BLOCK_BYTES, part);
        else
            read_image(disk, out, offset, part);
    }
}

/* The end of the zeros in the image that no block was ever written to, or `offset`. */
static uint64_t
hole_end(const struct disk *disk, uint64_t offset)
{
    off_t data = lseek(disk->image, (off_t)offset, SEEK_DATA);
    return data < 0 ? (errno == ENXIO ? disk_size(disk) : offset) : (uint64_t)data;
}

/* `from` NULL: zeros. */
static void
change(struct disk *disk, const uint8_t *from, uint64_t offset, uint64_t count)
{
    for (size_t part; count; offset += part, count -= part) {
        uint64_t number = offset / DISK_BLOCK_BYTES;
        size_t start = offset % DISK_BLOCK_BYTES;
        part = part_in_block(offset, count);
        struct block *block = cache_block(disk, number);
        if (from) {
            memcpy(block->data + start, from, part);
            from += part;
        } else {
            memset(block->data + start, 0, part);
        }
        mark_dirty(disk, number, start, part);
    }
    disk->writes++;
}

void
disk_write(struct disk *disk, const void *from, uint64_t offset, uint64_t count)
{
    change(disk, from, offset, count);
}

/* Without memory for what is zero already: mkfs trims a whole disk. */
void
disk_zero(struct disk *disk, uint64_t offset, uint64_t count)
{
    uint64_t hole = offset;
    for (size_t part; count; offset += part, count -= part) {
        part = part_in_block(offset, count);
        if (hole < offset + part)
            hole = hole_end(disk, offset);
        if (hole < offset + part || disk->cache[offset / DISK_BLOCK_BYTES])
            change(disk, NULL, offset, part);
    }
}

/* The sectors stay marked: what a cut may keep is what is there already. */
void
disk_write_through(struct disk *disk, uint64_t offset, uint64_t count)
{
    if (disk->lies)
        return;
    for (uint64_t at = offset; at < offset + count; at += DISK_SECTOR_BYTES) {
        const struct block *block = disk->cache[at / DISK_BLOCK_BYTES];
        if (block)
            write_image(disk, block->data + at % DISK_BLOCK_BYTES, at, DISK_SECTOR_BYTES);
    }
}

static void
write_sector(struct disk *disk, uint64_t number, unsigned sector)
{
    size_t at = (size_t)sector * DISK_SECTOR_BYTES;
    write_image(disk, disk->cache[number]->data + at, number * DISK_BLOCK_BYTES + at,
                DISK_SECTOR_BYTES);
}

static void
write_dirty_sectors(struct disk *disk, uint64_t number)
{
    struct block *block = disk->cache[number];
    if (block->dirty == 0xff) {
        write_image(disk, block->data, number * DISK_BLOCK_BYTES, DISK_BLOCK_BYTES);
        return;
    }
    for (unsigned sector = 0; sector < SECTORS_PER_BLOCK; sector++) {
        if (block->dirty & 1u << sector)
            write_sector(disk, number, sector);
    }
}

void
disk_flush(struct disk *disk)
{
    disk->flushes++;
    if (disk->lies)
        return;
    for (size_t i = 0; i < disk->dirty_count; i++) {
        uint64_t number = disk->dirty_list[i];
        write_dirty_sectors(disk, number);
        free(disk->cache[number]);
        disk->cache[number] = NULL;
    }
    disk->dirty_count = 0;
}

/* ---- the cut ---- */

struct chance {
    bool keeps_all;
    bool by_sector;
    bool by_block;
    int percent;
};

static struct chance
read_mode(const char *mode, unsigned seed)
{
    static const int percents[] = {10, 50, 90};
    srandom(seed);
    return (struct chance){
        .keeps_all = !strcmp(mode, "keep"),
        .by_sector = !strcmp(mode, "sectors"),
        .by_block = !strcmp(mode, "blocks"),
        .percent = percents[random() % 3],
    };
}

static bool
is_lucky(const struct chance *chance)
{
    return random() % 100 < chance->percent;
}

/* Adds to the numbers of sectors that were dirty, and that were kept. */
static void
cut_block(struct disk *disk, uint64_t number, const struct chance *chance, size_t *dirty,
          size_t *kept)
{
    bool keeps_block = chance->keeps_all || (chance->by_block && is_lucky(chance));
    for (unsigned sector = 0; sector < SECTORS_PER_BLOCK; sector++) {
        if (!(disk->cache[number]->dirty & 1u << sector))
            continue;
        ++*dirty;
        if (keeps_block || (chance->by_sector && is_lucky(chance))) {
            ++*kept;
            write_sector(disk, number, sector);
        }
    }
}

void
disk_cut(struct disk *disk, const char *mode, unsigned seed, const char *statistics_path)
{
    struct chance chance = read_mode(mode, seed);
    size_t dirty = 0, kept = 0;
    for (size_t i = 0; i < disk->dirty_count; i++)
        cut_block(disk, disk->dirty_list[i], &chance, &dirty, &kept);
    disk->lies = true;

    FILE *out = fopen(statistics_path, "a");
    if (!out)
        die(statistics_path);
    fprintf(out,
            "{\"mode\":\"%s\",\"lost_sectors\":%zu,\"kept_sectors\":%zu,\"writes\":%llu,"
            "\"flushes\":%llu}\n",
            mode, dirty - kept, kept, (unsigned long long)disk->writes,
            (unsigned long long)disk->flushes);
    if (fclose(out) != 0)
        die(statistics_path);
}
