/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the extents of images, against a comparison byte by byte. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "facts.h"

#define IMAGE_BYTES (24ull * MIB)
#define BLOCK 4096u

struct map {
    unsigned char blocks[2 * IMAGE_BYTES / BLOCK];
    uint64_t end;   /* of the extent before */
    uint64_t bytes; /* in all extents */
    unsigned count;
    bool is_bad;
};

static struct error *
take_extent(void *context, const struct extent *extent)
{
    struct map *map = context;
    bool is_apart = map->count == 0 || extent->offset > map->end;
    if (!is_apart || !extent->size || extent->offset % BLOCK)
        map->is_bad = true;
    map->end = extent->offset + extent->size;
    map->bytes += extent->size;
    map->count++;
    for (uint64_t at = extent->offset; at < map->end && at / BLOCK < sizeof map->blocks;
         at += BLOCK)
        map->blocks[at / BLOCK] = 1;
    return NULL;
}

static bool
read_map(struct data data, const struct data *base, uint64_t offset, struct map *map)
{
    struct extent_sink sink = {take_extent, map};
    memset(map, 0, sizeof *map);
    return SUCCEEDS(backend_extents(scene.backend, &data, base, offset, &sink)) &&
           EXPECT(!map->is_bad);
}

/* So many blocks are read at once. Not by mmap, which fills the holes of a tmpfs. */
#define BATCH 256u

static bool
read_batch(int fd, uint64_t block, char *bytes)
{
    ssize_t size = fd < 0 ? 0 : pread(fd, bytes, BATCH * BLOCK, (off_t)(block * BLOCK));
    if (size >= 0)
        memset(bytes + size, 0, BATCH * BLOCK - (size_t)size);
    return size >= 0;
}

/*
 * Every block that differs (from the base, or from zero) is in the map; `*needless` counts those in the map that do not. With what is beyond the
 * base's end taken as zero.
 */
static void
compare_bytes(struct data data, const struct data *base, uint64_t from, const struct map *map,
              uint64_t *needless)
{
    static char ours[BATCH * BLOCK], theirs[BATCH * BLOCK];
    int fd = open(path_of(data, NULL), O_RDONLY);
    int base_fd = base ? open(path_of(*base, NULL), O_RDONLY) : -1;
    struct stat status;
    EXPECT(fd >= 0 && fstat(fd, &status) == 0);
    unsigned missed = 0;
    *needless = 0;
    uint64_t first = from / BLOCK, end = (uint64_t)status.st_size / BLOCK;
    for (uint64_t block = first; block < end; block++) {
        size_t at = (block - first) % BATCH * BLOCK;
        if (!at)
            EXPECT(read_batch(fd, block, ours) && read_batch(base_fd, block, theirs));
        bool differs = memcmp(ours + at, theirs + at, BLOCK) != 0;
        missed += differs && !map->blocks[block];
        *needless += !differs && map->blocks[block];
    }
    EXPECT(missed == 0);
    EXPECT(map->end <= (uint64_t)status.st_size);
    close(fd);
    if (base_fd >= 0)
        close(base_fd);
}

/* A few writes of random size and holes, aligned or not. */
static void
scribble(struct data image, unsigned writes)
{
    int fd = open(path_of(image, NULL), O_RDWR);
    for (unsigned i = 0; i < writes; i++) {
        uint64_t at = random_number(IMAGE_BYTES - 300000);
        size_t size = 1 + random_number(i % 4 ? 20000 : 260000);
        if (i % 5 == 4)
            EXPECT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                             (off_t)(at / BLOCK * BLOCK), (off_t)(size / BLOCK + 1) * BLOCK) == 0);
        else
            EXPECT(fill_random(path_of(image, NULL), at, size));
    }
    close(fd);
}

static void
allocated_extents_are_those_with_data(void)
{
    static struct map map;
    uint64_t needless;
    SUCCEEDS(create(IMAGE("blocks"), IMAGE_BYTES));
    EXPECT(read_map(IMAGE("blocks"), NULL, 0, &map) && map.count == 0);
    for (int round = 0; round < 10; round++) {
        scribble(IMAGE("blocks"), 10);
        if (!read_map(IMAGE("blocks"), NULL, 0, &map))
            break;
        compare_bytes(IMAGE("blocks"), NULL, 0, &map, &needless);
        EXPECT(needless == 0);
        EXPECT(map.bytes > 0 && map.bytes <= IMAGE_BYTES);
        uint64_t from = random_number(IMAGE_BYTES / BLOCK) * (uint64_t)BLOCK;
        read_map(IMAGE("blocks"), NULL, from, &map);
        compare_bytes(IMAGE("blocks"), NULL, from, &map, &needless);
        EXPECT(needless == 0 && !memchr(map.blocks, 1, from / BLOCK));
    }
    SUCCEEDS(drop(IMAGE("blocks")));
}

/* Space that is only reserved reads as zero and is not data. */
static void
reserved_space_is_not_data(void)
{
    static struct map map;
    SUCCEEDS(create(IMAGE("reserved"), IMAGE_BYTES));
    int fd = open(path_of(IMAGE("reserved"), NULL), O_RDWR);
    int failed = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 * MIB);
    if (failed || scene.backend->ops->is_volatile)
        scene.not_for_this = "space is never reserved without being filled";
    else if (read_map(IMAGE("reserved"), NULL, 0, &map))
        EXPECT(map.count == 0);
    if (!scene.not_for_this)
        EXPECT(pwrite(fd, "x", 1, 5 * MIB) == 1 && read_map(IMAGE("reserved"), NULL, 0, &map) &&
               map.count == 1 && map.blocks[5 * MIB / BLOCK]);
    close(fd);
    SUCCEEDS(drop(IMAGE("reserved")));
}

/* False: they cannot be told on this file system, which is what was shown instead. */
static bool
needs_changes(void)
{
    static struct map map;
    struct extent_sink sink = {take_extent, &map};
    if (scene.backend->finds_changes)
        return true;
    struct data image = IMAGE("told"), base = IMAGE_SNAPSHOT("told");
    SUCCEEDS(create(image, MIB));
    SUCCEEDS(copy(image, base, 0));
    FAILS(CODE_FAILED_PRECONDITION, backend_extents(scene.backend, &image, &base, 0, &sink));
    SUCCEEDS(drop(image));
    SUCCEEDS(drop(base));
    return false;
}

/* The image, its last snapshot, and one of all snapshots before. */
static void
changed_extents_are_those_that_differ(void)
{
    static struct map map;
    uint64_t needless, wasted = 0, told = 0;
    if (!needs_changes())
        return;
    unsigned rounds = getenv("ROUNDS") ? (unsigned)atoi(getenv("ROUNDS")) : 60;
    struct data image = IMAGE("changing"), first = IMAGE_SNAPSHOT("first");
    struct data last = IMAGE_SNAPSHOT("last");
    SUCCEEDS(create(image, IMAGE_BYTES));
    scribble(image, 20);
    SUCCEEDS(copy(image, first, 0));
    for (unsigned round = 0; round < rounds; round++) {
        SUCCEEDS(drop(last));
        SUCCEEDS(copy(image, last, 0));
        if (!EXPECT(read_map(image, &last, 0, &map) && map.count == 0))
            break;
        scribble(image, 1 + random_number(8));
        if (!read_map(image, &last, 0, &map))
            break;
        compare_bytes(image, &last, 0, &map, &needless);
        wasted += needless;
        told += map.bytes / BLOCK;
        uint64_t from = random_number(IMAGE_BYTES / BLOCK) * (uint64_t)BLOCK;
        read_map(image, &first, from, &map);
        compare_bytes(image, &first, from, &map, &needless);
    }
    /* Hardly ever does a random write hit the bytes that were there; a hole in a hole costs a block at its ends. */
    EXPECT(wasted * 20 <= told);
    SUCCEEDS(drop(first));
    SUCCEEDS(drop(last));
    SUCCEEDS(drop(image));
}

static void
changes_are_found_when_the_image_has_grown_and_backwards(void)
{
    static struct map map;
    uint64_t needless;
    if (!needs_changes())
        return;
    struct data image = IMAGE("grown"), before = IMAGE_SNAPSHOT("before");
    struct data_settings larger = {.size_bytes = 2 * IMAGE_BYTES};
    SUCCEEDS(create(image, IMAGE_BYTES));
    scribble(image, 10);
    SUCCEEDS(copy(image, before, 0));
    SUCCEEDS(backend_change(scene.backend, &image, &larger));
    EXPECT(fill_random(path_of(image, NULL), IMAGE_BYTES - 5000, 50000));
    read_map(image, &before, 0, &map);
    compare_bytes(image, &before, 0, &map, &needless);
    EXPECT(map.count == 1);
    read_map(before, &image, 0, &map);
    compare_bytes(before, &image, 0, &map, &needless);
    EXPECT(map.count == 1 && map.end == IMAGE_BYTES);
    SUCCEEDS(drop(before));
    SUCCEEDS(drop(image));
}

static void
changes_are_found_in_compressed_images(void)
{
    static struct map map;
    uint64_t needless;
    if (!scene.backend->ops->compresses) {
        scene.not_for_this = "it cannot compress";
        return;
    }
    struct data image = IMAGE("pressed"), before = IMAGE_SNAPSHOT("pressed");
    struct data_settings zstd = {.size_bytes = IMAGE_BYTES, .compression = "zstd"};
    static char text[2 * MIB];
    memset(text, 'z', sizeof text);
    SUCCEEDS(backend_create(scene.backend, &image, &zstd));
    int fd = open(path_of(image, NULL), O_RDWR);
    EXPECT(pwrite(fd, text, sizeof text, MIB) == sizeof text && fsync(fd) == 0);
    SUCCEEDS(copy(image, before, 0));
    EXPECT(read_map(image, &before, 0, &map) && map.count == 0);
    EXPECT(pwrite(fd, "!", 1, MIB + 50000) == 1 && fsync(fd) == 0);
    close(fd);
    read_map(image, &before, 0, &map);
    compare_bytes(image, &before, 0, &map, &needless);
    EXPECT(map.count == 1 && map.bytes == BLOCK);
    SUCCEEDS(drop(before));
    SUCCEEDS(drop(image));
}

static struct error *
refuse_second(void *context, const struct extent *extent)
{
    (void)extent;
    return ++*(unsigned *)context == 2 ? error_new(CODE_ABORTED, "enough") : NULL;
}

static void
an_error_of_the_sink_ends_the_walk(void)
{
    unsigned calls = 0;
    struct extent_sink sink = {refuse_second, &calls};
    struct data image = IMAGE("walked");
    SUCCEEDS(create(image, IMAGE_BYTES));
    for (unsigned i = 0; i < 5; i++)
        EXPECT(fill_random(path_of(image, NULL), i * 2ull * MIB, BLOCK));
    FAILS(CODE_ABORTED, backend_extents(scene.backend, &image, NULL, 0, &sink));
    EXPECT(calls == 2);
    SUCCEEDS(drop(image));
}

const struct fact facts_of_extents[] = {
    {"allocated extents are those with data", allocated_extents_are_those_with_data},
    {"reserved space is not data", reserved_space_is_not_data},
    {"changed extents are those that differ, or it says that it cannot tell",
     changed_extents_are_those_that_differ},
    {"changes are found when the image has grown, and backwards",
     changes_are_found_when_the_image_has_grown_and_backwards},
    {"changes are found in compressed images", changes_are_found_in_compressed_images},
    {"an error of the sink ends the walk", an_error_of_the_sink_ends_the_walk},
    {NULL, NULL},
};
