/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of volatile_disk.h as the file "disk" of a FUSE file system, to put a loop device on.
 *
 *     volatile-disk-fuse IMAGE STATISTICS honest|lying MOUNTPOINT
 *
 * Writing "MODE SEED" to the file "cut" beside it cuts the power.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse3/fuse.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "volatile_disk.h"

struct mounted {
    struct disk *disk;
    const char *statistics_path;
    bool is_cut;
};

static struct mounted *
mounted(void)
{
    return fuse_get_context()->private_data;
}

static bool
is_disk(const char *path)
{
    return strcmp(path, "/disk") == 0;
}

static int
get_attributes(const char *path, struct stat *status, struct fuse_file_info *file)
{
    (void)file;
    memset(status, 0, sizeof *status);
    status->st_nlink = 1;
    status->st_mode = S_IFREG | 0600;
    if (strcmp(path, "/") == 0)
        status->st_mode = S_IFDIR | 0700;
    else if (is_disk(path))
        status->st_size = (off_t)disk_size(mounted()->disk);
    else if (strcmp(path, "/cut") != 0)
        return -ENOENT;
    return 0;
}

static int
open_file(const char *path, struct fuse_file_info *file)
{
    (void)path;
    file->direct_io = 1;
    return 0;
}

static int
read_file(const char *path, char *to, size_t count, off_t offset, struct fuse_file_info *file)
{
    struct disk *disk = mounted()->disk;
    (void)file;
    if (!is_disk(path) || (uint64_t)offset >= disk_size(disk))
        return 0;
    if (count > disk_size(disk) - (uint64_t)offset)
        count = disk_size(disk) - (uint64_t)offset;
    disk_read(disk, to, (uint64_t)offset, count);
    return (int)count;
}

static int
cut(const char *from, size_t count)
{
    struct mounted *it = mounted();
    char text[64] = "", mode[16] = "";
    unsigned seed = 0;
    memcpy(text, from, count < sizeof text ? count : sizeof text - 1);
    if (it->is_cut || sscanf(text, "%15s %u", mode, &seed) != 2)
        return -EINVAL;
    disk_cut(it->disk, mode, seed, it->statistics_path);
    it->is_cut = true;
    return (int)count;
}

static int
write_file(const char *path, const char *from, size_t count, off_t offset,
           struct fuse_file_info *file)
{
    (void)file;
    if (!is_disk(path))
        return cut(from, count);
    if (!disk_holds(mounted()->disk, (uint64_t)offset, count))
        return -EINVAL;
    disk_write(mounted()->disk, from, (uint64_t)offset, count);
    return (int)count;
}

static int
sync_file(const char *path, int only_data, struct fuse_file_info *file)
{
    (void)path, (void)only_data, (void)file;
    disk_flush(mounted()->disk);
    return 0;
}

/* The loop device trims and zeroes this way. */
static int
allocate(const char *path, int mode, off_t offset, off_t length, struct fuse_file_info *file)
{
    (void)file;
    if (!is_disk(path) || !(mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)))
        return -EOPNOTSUPP;
    if (!disk_holds(mounted()->disk, (uint64_t)offset, (uint64_t)length))
        return -EINVAL;
    disk_zero(mounted()->disk, (uint64_t)offset, (uint64_t)length);
    return 0;
}

/* Opening "cut" for writing truncates it. */
static int
set_size(const char *path, off_t length, struct fuse_file_info *file)
{
    (void)path, (void)length, (void)file;
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = get_attributes,
    .open = open_file,
    .read = read_file,
    .write = write_file,
    .fsync = sync_file,
    .fallocate = allocate,
    .truncate = set_size,
};

int
main(int count, char **arguments)
{
    if (count != 5) {
        fprintf(stderr, "usage: volatile-disk-fuse IMAGE STATISTICS honest|lying MOUNTPOINT\n");
        return 2;
    }
    struct mounted it = {
        .disk = disk_open(arguments[1], strcmp(arguments[3], "lying") == 0),
        .statistics_path = arguments[2],
    };
    /* One thread, in the foreground. */
    char *words[] = {arguments[0], arguments[4], "-f", "-s", "-o", "fsname=volatile-disk", NULL};
    return fuse_main(6, words, &operations, &it);
}
