/* SPDX-License-Identifier: Apache-2.0 */
/* Room for the pool on the disk below it: see pool_room.h. */
#include "backends/pool_room.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backends/btrfs_items.h"
#include "base/files.h"
#include "base/memory.h"

#define RESERVE_FILE "reserve"
#define DISK_PART 50u
#define LARGEST_RESERVE (UINT64_C(4) << 30)
#define SMALLEST_CHANGE (UINT64_C(4) << 20) /* smaller changes are not worth a write */
#define SPACE_KINDS 16u
#define DEVICE 1u /* a pool has only this one */

struct error *
pool_room_on_disk(int directory, uint64_t *bytes)
{
    struct statfs disk;
    if (fstatfs(directory, &disk) != 0)
        return error_from_errno(errno, "ask for the free space below the pool");
    uint64_t block = (uint64_t)disk.f_bsize;
    uint64_t reserve = (uint64_t)disk.f_blocks * block / DISK_PART;
    if (reserve > LARGEST_RESERVE)
        reserve = LARGEST_RESERVE;
    uint64_t available = (uint64_t)disk.f_bavail * block;
    *bytes = available > reserve ? available - reserve : 0;
    return NULL;
}

/* ---- metadata ---- */

struct taking {
    int image;
    int failed; /* the value of errno */
    uint64_t next_chunk;
};

static void
take_stripes(struct taking *taking, const struct btrfs_chunk *chunk, const char *stripes,
             unsigned count)
{
    for (unsigned i = 0; i < count && !taking->failed; i++) {
        struct btrfs_stripe stripe;
        memcpy(&stripe, stripes + i * sizeof stripe, sizeof stripe);
        if (fallocate(taking->image, FALLOC_FL_KEEP_SIZE, (off_t)le64toh(stripe.offset),
                      (off_t)le64toh(chunk->length)) != 0)
            taking->failed = errno;
    }
}

/* In the order of their addresses; addresses are never reused. */
static void
take_chunk(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    struct taking *taking = context;
    struct btrfs_chunk chunk;
    size_t before_stripes = offsetof(struct btrfs_chunk, stripe);
    if (header->type != BTRFS_CHUNK_ITEM_KEY || header->len < sizeof chunk || taking->failed)
        return;
    memcpy(&chunk, item, sizeof chunk);
    unsigned count = le16toh(chunk.num_stripes);
    bool is_whole = header->len >= before_stripes + count * sizeof(struct btrfs_stripe);
    if (is_whole && !(le64toh(chunk.type) & BTRFS_BLOCK_GROUP_DATA))
        take_stripes(taking, &chunk, (const char *)item + before_stripes, count);
    if (!taking->failed)
        taking->next_chunk = header->offset + 1;
}

struct error *
pool_room_take_metadata(int root, const char *image, uint64_t *next_chunk)
{
    struct btrfs_range range = {
        .tree = BTRFS_CHUNK_TREE_OBJECTID,
        .min = {BTRFS_FIRST_CHUNK_TREE_OBJECTID, BTRFS_CHUNK_ITEM_KEY, *next_chunk},
        .max = {BTRFS_FIRST_CHUNK_TREE_OBJECTID, BTRFS_CHUNK_ITEM_KEY, UINT64_MAX},
    };
    int file AUTO(files_close) = open(image, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return error_from_errno(errno, "open %s", image);
    struct taking taking = {.image = file, .next_chunk = *next_chunk};
    struct error *error = btrfs_items_each(root, range, take_chunk, &taking);
    *next_chunk = taking.next_chunk;
    if (!error && taking.failed)
        error = error_from_errno(taking.failed, "take blocks for the pool's metadata");
    return error;
}

/* ---- the reserve file ---- */

static struct error *
find_free_in_chunks(int root, uint64_t *bytes)
{
    struct btrfs_ioctl_space_args *spaces AUTO(memory_cleanup) =
        memory_zeroed(sizeof *spaces + SPACE_KINDS * sizeof spaces->spaces[0]);
    spaces->space_slots = SPACE_KINDS;
    if (ioctl(root, BTRFS_IOC_SPACE_INFO, spaces) != 0)
        return error_from_errno(errno, "ask for the free space of the pool");
    *bytes = 0;
    for (uint64_t i = 0; i < spaces->total_spaces && i < SPACE_KINDS; i++) {
        const struct btrfs_ioctl_space_info *space = &spaces->spaces[i];
        if (space->flags & BTRFS_BLOCK_GROUP_DATA && space->total_bytes > space->used_bytes)
            *bytes += space->total_bytes - space->used_bytes;
    }
    return NULL;
}

/*
 * How much could be written into the pool. statfs does not tell: it reports 0 if metadata has no
 * room.
 */
static struct error *
find_free(int root, uint64_t *bytes)
{
    struct btrfs_ioctl_dev_info_args *device AUTO(memory_cleanup) = memory_zeroed(sizeof *device);
    device->devid = DEVICE;
    struct error *error = find_free_in_chunks(root, bytes);
    if (!error && ioctl(root, BTRFS_IOC_DEV_INFO, device) != 0)
        error = error_from_errno(errno, "ask for the size of the pool");
    if (!error && device->total_bytes > device->bytes_used)
        *bytes += device->total_bytes - device->bytes_used;
    return error;
}

/* Grows as far as there is room: halves the step when the disk is full. */
static struct error *
grow(int file, uint64_t from_bytes, uint64_t to_bytes)
{
    uint64_t step = to_bytes - from_bytes;
    while (from_bytes < to_bytes && step >= SMALLEST_CHANGE) {
        uint64_t left = to_bytes - from_bytes;
        uint64_t piece = step < left ? step : left;
        if (fallocate(file, 0, (off_t)from_bytes, (off_t)piece) == 0)
            from_bytes += piece;
        else if (errno == ENOSPC)
            step /= 2;
        else
            return error_from_errno(errno, "make the pool's reserve larger");
    }
    return NULL;
}

struct error *
pool_room_drop_reserve(int root)
{
    if (unlinkat(root, RESERVE_FILE, 0) == 0)
        return files_sync(root);
    return errno == ENOENT ? NULL : error_from_errno(errno, "remove the pool's reserve");
}

static struct error *
resize(int root, uint64_t have_bytes, uint64_t want_bytes)
{
    if (!want_bytes)
        return pool_room_drop_reserve(root);
    int file AUTO(files_close) =
        openat(root, RESERVE_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return error_from_errno(errno, "open the pool's reserve");
    if (want_bytes > have_bytes)
        return grow(file, have_bytes, want_bytes);
    if (ftruncate(file, (off_t)want_bytes) != 0)
        return error_from_errno(errno, "make the pool's reserve smaller");
    return NULL;
}

struct reserve {
    uint64_t have_bytes;
    uint64_t want_bytes;
};

/*
 * Data written to the pool reduces the free space of both pool and disk, so it does not change the
 * size of the reserve.
 */
static struct error *
measure(int root, int directory, struct reserve *out)
{
    struct stat status = {0};
    uint64_t free_bytes, disk_bytes;
    if (fstatat(root, RESERVE_FILE, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT)
        return error_from_errno(errno, "look at the pool's reserve");
    struct error *error = find_free(root, &free_bytes);
    if (!error)
        error = pool_room_on_disk(directory, &disk_bytes);
    if (error)
        return error;
    uint64_t all = (uint64_t)status.st_size + free_bytes;
    *out = (struct reserve){(uint64_t)status.st_size, all > disk_bytes ? all - disk_bytes : 0};
    return NULL;
}

static bool
is_worth_changing(const struct reserve *reserve)
{
    uint64_t have = reserve->have_bytes, want = reserve->want_bytes;
    return (want > have ? want - have : have - want) >= SMALLEST_CHANGE || (have && !want);
}

/* btrfs counts only committed data as used: hence the commits before and after. */
struct error *
pool_room_set_reserve(int root, int directory)
{
    struct reserve reserve;
    struct error *error = measure(root, directory, &reserve);
    if (error || !is_worth_changing(&reserve))
        return error;
    error = files_sync(root);
    if (!error)
        error = measure(root, directory, &reserve);
    if (error || !is_worth_changing(&reserve))
        return error;
    error = resize(root, reserve.have_bytes, reserve.want_bytes);
    return error ? error : files_sync(root);
}

bool
pool_room_has_reserve(int root)
{
    struct stat status;
    return fstatat(root, RESERVE_FILE, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_size > 0;
}
