/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items of btrfs: see btrfs_items.h.
 *
 * Extents are read from the subvolume's own items, not by FIEMAP: FIEMAP looks up everything that
 * shares an extent, which takes seconds for an image with many snapshots, and does not tell which
 * part of a compressed extent a file uses.
 */
#include "backends/btrfs_items.h"

#include <endian.h>
#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/extents.h"
#include "base/memory.h"

/* No extent is larger: 128 MiB of data, 256 MiB reserved by one fallocate. */
#define LARGEST_EXTENT (256u << 20)

const void *
btrfs_items_next(struct btrfs_items *items, struct btrfs_ioctl_search_header *header)
{
    const char *results = (const char *)items->arguments.buf;
    if (items->given >= items->arguments.key.nr_items)
        return NULL;
    memcpy(header, results + items->at, sizeof *header);
    const void *item = results + items->at + sizeof *header;
    items->at += sizeof *header + header->len;
    items->given++;
    return item;
}

struct error *
btrfs_items_ask(struct btrfs_items *items, int fd, const struct btrfs_range *range)
{
    items->given = 0;
    items->at = 0;
    items->arguments.key = (struct btrfs_ioctl_search_key){
        .tree_id = range->tree,
        .min_objectid = range->min.objectid,
        .min_type = range->min.type,
        .min_offset = range->min.offset,
        .max_objectid = range->max.objectid,
        .max_type = range->max.type,
        .max_offset = range->max.offset,
        .min_transid = range->since,
        .max_transid = UINT64_MAX,
        .nr_items = UINT32_MAX,
    };
    items->arguments.buf_size = BTRFS_ITEMS_BYTES;
    if (ioctl(fd, BTRFS_IOC_TREE_SEARCH_V2, &items->arguments) != 0)
        return error_from_errno(errno, "read items of tree %llu", (unsigned long long)range->tree);
    return NULL;
}

/* The smallest key after this one; false if there is none. */
static bool
set_next_key(struct btrfs_key *key, const struct btrfs_ioctl_search_header *header)
{
    *key = (struct btrfs_key){header->objectid, (uint8_t)header->type, header->offset};
    if (++key->offset)
        return true;
    if (++key->type)
        return true;
    return ++key->objectid != 0;
}

struct error *
btrfs_items_each(int fd, struct btrfs_range range,
                 void (*take)(void *context, const struct btrfs_ioctl_search_header *header,
                              const void *item),
                 void *context)
{
    struct btrfs_items *items AUTO(memory_cleanup) = memory_new(sizeof *items);
    for (;;) {
        struct btrfs_ioctl_search_header header;
        const void *item;
        struct error *error = btrfs_items_ask(items, fd, &range);
        if (error || !items->arguments.key.nr_items)
            return error;
        while ((item = btrfs_items_next(items, &header)))
            take(context, &header, item);
        if (!set_next_key(&range.min, &header))
            return NULL;
    }
}

struct inode_count {
    uint64_t inodes;
    uint64_t bytes;
};

static void
count_inode(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    struct inode_count *count = context;
    struct btrfs_inode_item inode;
    if (header->type != BTRFS_INODE_ITEM_KEY || header->len < sizeof inode)
        return;
    memcpy(&inode, item, sizeof inode);
    count->bytes += le64toh(inode.nbytes);
    count->inodes++;
}

/* One ioctl. */
static struct error *
count_some(int subvolume, struct btrfs_items *items, struct btrfs_range *range,
           struct inode_count *count, bool *has_more)
{
    struct btrfs_ioctl_search_header header = {0};
    const void *item;
    struct error *error = btrfs_items_ask(items, subvolume, range);
    if (error)
        return error;
    *has_more = items->arguments.key.nr_items;
    while ((item = btrfs_items_next(items, &header)))
        count_inode(count, &header, item);
    *has_more = *has_more && set_next_key(&range->min, &header);
    return NULL;
}

struct error *
btrfs_items_count_inodes(int subvolume, uint64_t most, uint64_t *inodes, uint64_t *bytes)
{
    struct btrfs_range range = {.min = {BTRFS_FIRST_FREE_OBJECTID + 1, BTRFS_INODE_ITEM_KEY, 0},
                                .max = {BTRFS_LAST_FREE_OBJECTID, BTRFS_INODE_ITEM_KEY, 0}};
    struct btrfs_items *items AUTO(memory_cleanup) = memory_new(sizeof *items);
    struct inode_count count = {0};
    bool has_more = true;
    struct error *error = NULL;
    while (!error && has_more && count.inodes <= most)
        error = count_some(subvolume, items, &range, &count, &has_more);
    bool is_known = !error && count.inodes <= most;
    *inodes = is_known ? count.inodes : DATA_USAGE_UNKNOWN;
    *bytes = is_known ? count.bytes : 0;
    return error;
}

/* False for holes and preallocated ranges. */
static bool
read_extent(const struct btrfs_ioctl_search_header *header, const void *item,
            struct extent_run *run)
{
    struct btrfs_file_extent_item extent = {0};
    size_t size = header->len < sizeof extent ? header->len : sizeof extent;
    memcpy(&extent, item, size);
    if (extent.type == BTRFS_FILE_EXTENT_INLINE) {
        *run = (struct extent_run){header->offset, le64toh(extent.ram_bytes), 0, 0, true};
        return run->size > 0;
    }
    *run = (struct extent_run){.offset = header->offset,
                               .size = le64toh(extent.num_bytes),
                               .place = le64toh(extent.disk_bytenr),
                               .position = le64toh(extent.offset)};
    return extent.type == BTRFS_FILE_EXTENT_REG && run->place && run->size;
}

static struct error *
load_extents(struct extent_reader *reader)
{
    struct btrfs_items *items AUTO(memory_cleanup) = memory_new(sizeof *items);
    while (!reader->count && !reader->is_done) {
        struct btrfs_ioctl_search_header header;
        const void *item;
        struct btrfs_range range = {
            .min = {reader->inode, BTRFS_EXTENT_DATA_KEY, reader->next_offset},
            .max = {reader->inode, BTRFS_EXTENT_DATA_KEY, UINT64_MAX}};
        struct error *error = btrfs_items_ask(items, reader->fd, &range);
        if (error)
            return error;
        reader->is_done = items->arguments.key.nr_items == 0;
        while (reader->count < EXTENT_BATCH && (item = btrfs_items_next(items, &header))) {
            reader->next_offset = header.offset + 1;
            if (read_extent(&header, item, &reader->runs[reader->count]))
                reader->count++;
        }
    }
    return NULL;
}

/*
 * Written data gets its items only when the write-out is complete, and fsync returns earlier: it
 * writes a log instead. FIEMAP with this flag waits for the whole file, whatever range is
 * requested.
 */
static int
wait_for_items(int fd)
{
    struct fiemap *map AUTO(memory_cleanup) =
        memory_zeroed(sizeof *map + sizeof map->fm_extents[0]);
    map->fm_length = 1;
    map->fm_flags = FIEMAP_FLAG_SYNC;
    map->fm_extent_count = 1;
    return ioctl(fd, FS_IOC_FIEMAP, map);
}

struct error *
btrfs_items_open_extents(struct extent_reader *reader, int fd, uint64_t offset)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || wait_for_items(fd) != 0)
        return error_from_errno(errno, "wait for what was written to an image");
    *reader = (struct extent_reader){
        .load = load_extents,
        .fd = fd,
        .inode = status.st_ino,
        .size = (uint64_t)status.st_size,
        .next_offset = offset > LARGEST_EXTENT ? offset - LARGEST_EXTENT : 0,
    };
    return NULL;
}
