/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what csi.v1.SnapshotMetadata says with the bytes themselves.
 *
 *     changed-blocks BACKEND DIRECTORY ROUNDS SEED
 *
 * In each round an image is changed at random (bytes, whole blocks, the same bytes again, holes, reserved space), a snapshot is taken, and compared with
 * one of the last few. Every byte that differs must be in an extent of the delta, every byte that is not 0 in one that is allocated;
 * and extents must not reach beyond the blocks that were touched.
 *
 * Exit code 0: good. 1: something is wrong; a line says what.
 */
#include <linux/falloc.h>

#include "unit/csi_extents.h"

#define BLOCK 4096u
#define IMAGE_BYTES (3u << 20)
#define BLOCKS (IMAGE_BYTES / BLOCK)
#define KEPT 4u /* snapshots to compare with */

struct taken {
    char id[128];
    bool touched[BLOCKS]; /* since the snapshot before */
    uint8_t *bytes;
};

struct trial {
    struct csi_ends csi;
    char volume[128];
    int image;
    struct taken snapshots[KEPT];
    unsigned count; /* taken so far; the newest is snapshots[(count - 1) % KEPT] */
    bool filled[BLOCKS];
    size_t differing_bytes, delta_bytes;
};

/* ---- chance ---- */

static uint64_t state;

static unsigned
below(unsigned limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % limit;
}

static size_t
random_size(void)
{
    switch (below(3)) {
    case 0:
        return 1 + below(600);
    case 1:
        return BLOCK * (1 + below(8));
    default:
        return 1 + below(100000);
    }
}

/* ---- changes ---- */

static void
mark(bool *blocks, size_t offset, size_t size, bool value)
{
    for (size_t i = offset / BLOCK; i <= (offset + size - 1) / BLOCK; i++)
        blocks[i] = value;
}

static void
write_bytes(struct trial *trial, bool *touched, size_t offset, size_t size, bool is_same)
{
    uint8_t *bytes = malloc(size);
    if (is_same)
        CHECK(pread(trial->image, bytes, size, (off_t)offset) == (ssize_t)size);
    else
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)below(256);
    CHECK(pwrite(trial->image, bytes, size, (off_t)offset) == (ssize_t)size);
    mark(touched, offset, size, true);
    mark(trial->filled, offset, size, true);
    free(bytes);
}

static void
punch(struct trial *trial, bool *touched, size_t offset, size_t size)
{
    CHECK(fallocate(trial->image, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                    (off_t)size) == 0);
    mark(touched, offset, size, true);
    /* Blocks that it takes by half are written, with zeros in that half. */
    mark(trial->filled, offset, size, true);
    size_t first = (offset + BLOCK - 1) / BLOCK, end = (offset + size) / BLOCK;
    for (size_t i = first; i < end; i++)
        trial->filled[i] = false;
}

static void
change(struct trial *trial, bool *touched)
{
    size_t offset = below(IMAGE_BYTES), size = random_size();
    if (below(3) == 0)
        offset -= offset % BLOCK;
    if (size > IMAGE_BYTES - offset)
        size = IMAGE_BYTES - offset;
    switch (below(8)) {
    case 0:
    case 1:
        punch(trial, touched, offset, size);
        break;
    case 2:
        CHECK(fallocate(trial->image, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size) == 0);
        mark(touched, offset, size, true);
        break;
    case 3:
        write_bytes(trial, touched, offset, size, true);
        break;
    default:
        write_bytes(trial, touched, offset, size, false);
    }
}

/* ---- snapshots ---- */

static void
forget(struct trial *trial, struct taken *old)
{
    if (old->id[0])
        succeed(csi_delete_snapshot(&trial->csi, old->id));
    free(old->bytes);
    *old = (struct taken){0};
}

static uint8_t *
read_image(struct trial *trial, const char *snapshot_id)
{
    int image = open(csi_path(&trial->csi, snapshot_id, KIND_IMAGE), O_RDONLY | O_CLOEXEC);
    uint8_t *bytes = malloc(IMAGE_BYTES);
    CHECK(image >= 0 && pread(image, bytes, IMAGE_BYTES, 0) == (ssize_t)IMAGE_BYTES);
    close(image);
    return bytes;
}

static struct taken *
change_and_take(struct trial *trial)
{
    struct taken *next = &trial->snapshots[trial->count % KEPT];
    char name[32];
    forget(trial, next);
    for (unsigned i = below(6); i > 0; i--)
        change(trial, next->touched);
    snprintf(name, sizeof name, "s%u", trial->count++);
    Csi__V1__Snapshot *snapshot = csi_create_snapshot(&trial->csi, name, trial->volume);
    snprintf(next->id, sizeof next->id, "%s", snapshot->snapshot_id);
    next->bytes = read_image(trial, next->id);
    return next;
}

/* ---- comparing ---- */

/* Each byte from `offset` on that `is_wanted` says must be told is in an extent. */
static void
check_all_told(const struct extent_list *list, size_t offset, const uint8_t *bytes,
               const uint8_t *base, size_t *differing)
{
    size_t next = 0;
    for (size_t i = offset; i < IMAGE_BYTES; i++) {
        if (bytes[i] == (base ? base[i] : 0))
            continue;
        ++*differing;
        while (next < list->count && list->extents[next].offset + list->extents[next].size <= i)
            next++;
        if (next < list->count && list->extents[next].offset <= i)
            continue;
        CHECK(!"a byte is in no extent");
        return;
    }
}

/* And extents have nothing but blocks that may have it. */
static size_t
check_only_told(const struct extent_list *list, const bool *blocks)
{
    size_t told = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct extent *extent = &list->extents[i];
        told += extent->size;
        for (uint64_t at = extent->offset / BLOCK;
             at <= (extent->offset + extent->size - 1) / BLOCK; at++)
            CHECK(blocks[at]);
    }
    return told;
}

static int64_t
random_offset(void)
{
    return below(2) ? 0 : below(IMAGE_BYTES);
}

static int32_t
random_results(void)
{
    return below(2) ? 0 : 1 + (int32_t)below(5);
}

static void
check_allocated(struct trial *trial, const struct taken *target)
{
    struct extent_list list AUTO(extent_list_clear) = {0};
    int64_t offset = random_offset();
    size_t filled = 0;
    succeed(extent_list_read(&list, &trial->csi, NULL, target->id, offset, random_results()));
    CHECK_NUMBER(list.capacity_bytes, IMAGE_BYTES);
    check_all_told(&list, (size_t)offset, target->bytes, NULL, &filled);
    check_only_told(&list, trial->filled);
}

static void
check_delta(struct trial *trial, const struct taken *target)
{
    struct extent_list list AUTO(extent_list_clear) = {0};
    unsigned most = trial->count < KEPT ? trial->count : KEPT;
    unsigned back = below(most);
    bool touched[BLOCKS] = {0};
    for (unsigned i = 0; i < back; i++)
        for (size_t block = 0; block < BLOCKS; block++)
            touched[block] |= trial->snapshots[(trial->count - 1 - i) % KEPT].touched[block];
    const struct taken *base = &trial->snapshots[(trial->count - 1 - back) % KEPT];
    int64_t offset = random_offset();
    succeed(extent_list_read(&list, &trial->csi, base->id, target->id, offset, random_results()));
    check_all_told(&list, (size_t)offset, target->bytes, base->bytes, &trial->differing_bytes);
    trial->delta_bytes += check_only_told(&list, touched);
}

int
main(int count, char **arguments)
{
    static struct trial trial;
    if (count != 5)
        return 2;
    unsigned rounds = (unsigned)atoi(arguments[3]);
    state = (uint64_t)atoll(arguments[4]);
    csi_ends_open(&trial.csi, arguments[1], arguments[2]);
    snprintf(trial.volume, sizeof trial.volume, "%s",
             csi_create_volume(&trial.csi, "image", "raw", IMAGE_BYTES));
    trial.image = open(csi_path(&trial.csi, trial.volume, KIND_IMAGE), O_RDWR | O_CLOEXEC);
    uint64_t start = timers_now();
    for (unsigned round = 0; round < rounds && !check_failed; round++) {
        const struct taken *target = change_and_take(&trial);
        check_allocated(&trial, target);
        check_delta(&trial, target);
        if (check_failed)
            fprintf(stderr, "in round %u\n", round);
        arena_clear(&trial.csi.arena);
    }
    printf("%s: %u rounds in %u ms: %zu bytes differed, %zu were told\n", arguments[1], rounds,
           ms_since(start), trial.differing_bytes, trial.delta_bytes);
    CHECK(trial.differing_bytes > 0 && trial.delta_bytes >= trial.differing_bytes);
    for (unsigned i = 0; i < KEPT; i++)
        forget(&trial, &trial.snapshots[i]);
    close(trial.image);
    csi_ends_close(&trial.csi);
    return check_report("changed-blocks");
}
