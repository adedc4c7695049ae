/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about sizes: what is enforced, what grows, what is told about use. */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "facts.h"

/* Writes until the file system refuses, at most `most`; gives how much went in, and errno's value in `*why`. */
static uint64_t
write_until_full(const char *path, uint64_t most, int *why)
{
    static char block[64 << 10];
    uint64_t written = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    *why = fd < 0 ? errno : 0;
    while (!*why && written < most) {
        for (size_t i = 0; i < sizeof block; i += 4)
            *(uint32_t *)(void *)(block + i) = random_number(UINT32_MAX);
        ssize_t size = write(fd, block, sizeof block);
        if (size < 0)
            *why = errno;
        else
            written += (uint64_t)size;
    }
    if (!*why && fsync(fd) != 0)
        *why = errno;
    if (fd >= 0)
        close(fd);
    return written;
}

/* Within 1 MiB of the size, as the contract of the volumes says. */
static void
check_full_at(struct data data, const char *name, uint64_t size)
{
    int why = 0;
    uint64_t written = write_until_full(path_of(data, name), size + 16 * MIB, &why);
    EXPECT(why == EDQUOT || why == ENOSPC);
    EXPECT(written + MIB >= size && written <= size + MIB);
    if (written + MIB < size || written > size + MIB)
        fprintf(stderr, "    wrote %llu of %llu\n", (unsigned long long)written,
                (unsigned long long)size);
}

static bool
needs_limits(void)
{
    if (!scene.backend->enforces_tree_size)
        scene.not_for_this = "it does not say that it enforces the sizes of trees here";
    return scene.backend->enforces_tree_size;
}

static void
a_tree_is_full_at_its_size_and_can_grow(void)
{
    struct data data = VOLUME("limited");
    struct data_settings larger = {.size_bytes = 48 * MIB};
    if (!needs_limits())
        return;
    SUCCEEDS(create(data, 32 * MIB));
    check_full_at(data, "file", 32 * MIB);
    EXPECT(unlink(path_of(data, "file")) == 0);
    EXPECT(sync_around(data));
    SUCCEEDS(backend_change(scene.backend, &data, &larger));
    check_full_at(data, "file", 48 * MIB);
    SUCCEEDS(drop(data));
}

static void
a_clone_into_a_larger_size_has_the_larger_size(void)
{
    struct data_usage usage;
    struct data data = VOLUME("clone");
    if (!needs_limits())
        return;
    SUCCEEDS(create(VOLUME("source"), 16 * MIB));
    SUCCEEDS(copy(VOLUME("source"), data, 32 * MIB));
    SUCCEEDS(backend_usage(scene.backend, &data, &usage));
    EXPECT(usage.total_bytes == 32 * MIB);
    check_full_at(data, "file", 32 * MIB);
    SUCCEEDS(drop(data));
    SUCCEEDS(drop(VOLUME("source")));
}

/* Of a pool this is an unmount and a mount. */
static void
a_size_outlives_a_restart(void)
{
    if (!needs_limits())
        return;
    SUCCEEDS(create(VOLUME("made"), 16 * MIB));
    SUCCEEDS(copy(VOLUME("made"), VOLUME("cloned"), 24 * MIB));
    scene_close();
    if (!scene_open())
        exit(1);
    check_full_at(VOLUME("made"), "file", 16 * MIB);
    check_full_at(VOLUME("cloned"), "file", 24 * MIB);
    SUCCEEDS(drop(VOLUME("made")));
    SUCCEEDS(drop(VOLUME("cloned")));
}

/* A clone is as large as it was asked to be, whatever its source was. */
static void
a_clone_without_a_size_is_not_limited(void)
{
    struct data clone = VOLUME("clone");
    struct data_usage usage;
    int why = 0;
    if (!needs_limits() || scene.backend->ops->is_volatile) {
        scene.not_for_this = "a tmpfs always has a size, others have none";
        return;
    }
    SUCCEEDS(create(VOLUME("source"), 16 * MIB));
    SUCCEEDS(copy(VOLUME("source"), clone, 0));
    EXPECT(write_until_full(path_of(clone, "file"), 40 * MIB, &why) == 40 * MIB);
    EXPECT(why == 0);
    SUCCEEDS(backend_usage(scene.backend, &clone, &usage));
    EXPECT(usage.total_bytes == 0);
    SUCCEEDS(drop(clone));
    SUCCEEDS(drop(VOLUME("source")));
}

/* What a snapshot keeps must not take the room of the volume. */
static void
a_volume_with_snapshots_can_rewrite_all_it_has(void)
{
    int why = 0;
    if (!needs_limits())
        return;
    SUCCEEDS(create(VOLUME("busy"), 32 * MIB));
    for (int round = 0; round < 3; round++) {
        char handle[16];
        snprintf(handle, sizeof handle, "kept-%d", round);
        EXPECT(write_until_full(path_of(VOLUME("busy"), "file"), 24 * MIB, &why) == 24 * MIB);
        EXPECT(why == 0);
        SUCCEEDS(copy(VOLUME("busy"), SNAPSHOT(handle), 0));
    }
    EXPECT(write_until_full(path_of(VOLUME("busy"), "file"), 24 * MIB, &why) == 24 * MIB);
    EXPECT(why == 0);
    SUCCEEDS(drop(VOLUME("busy")));
    for (int round = 0; round < 3; round++) {
        char handle[16];
        snprintf(handle, sizeof handle, "kept-%d", round);
        SUCCEEDS(drop(SNAPSHOT(handle)));
    }
}

/* btrfs frees what was deleted every half minute, and when it is asked to. */
static void
hasten_cleaning(struct data data)
{
    int fd = open(path_of(data, NULL), O_RDONLY | O_CLOEXEC);
    ioctl(fd, BTRFS_IOC_SYNC);
    close(fd);
}

/* Nothing more can be written, or something can; the back end looks at that by itself, and the kernel frees what was deleted, some time later. */
static bool
comes_to(struct data data, bool is_full)
{
    int why = 0;
    for (unsigned tries = 0; tries < 200; tries++) {
        SUCCEEDS(backend_tend(scene.backend));
        write_until_full(path_of(data, "attempt"), 2 * MIB, &why);
        unlink(path_of(data, "attempt"));
        hasten_cleaning(data);
        if (is_full == (why != 0))
            return true;
        usleep(100000);
    }
    return false;
}

static void
a_size_holds_when_the_snapshots_have_gone(void)
{
    int why = 0;
    uint64_t held = 0;
    if (!needs_limits())
        return;
    SUCCEEDS(create(VOLUME("ratchet"), 32 * MIB));
    for (int round = 0; round < 4; round++) {
        char name[16];
        snprintf(name, sizeof name, "file-%d", round);
        held += write_until_full(path_of(VOLUME("ratchet"), name), 40 * MIB, &why);
        EXPECT(why == EDQUOT || why == ENOSPC);
        SUCCEEDS(copy(VOLUME("ratchet"), SNAPSHOT("passing"), 0));
        SUCCEEDS(drop(SNAPSHOT("passing")));
        EXPECT(comes_to(VOLUME("ratchet"), true));
    }
    EXPECT(held <= 34 * MIB);
    if (held > 34 * MIB)
        fprintf(stderr, "    it holds %llu MiB\n", (unsigned long long)held / MIB);
    EXPECT(unlink(path_of(VOLUME("ratchet"), "file-0")) == 0);
    EXPECT(comes_to(VOLUME("ratchet"), false));
    SUCCEEDS(drop(VOLUME("ratchet")));
}

/* Once over its size, by what was new since the last snapshot, it is stopped. */
static void
a_volume_with_many_snapshots_does_not_grow_with_them(void)
{
    int why = 0;
    uint64_t held = 0;
    char name[16];
    if (!needs_limits())
        return;
    SUCCEEDS(create(VOLUME("grower"), 32 * MIB));
    for (int round = 0; round < 4; round++) {
        snprintf(name, sizeof name, "file-%d", round);
        held += write_until_full(path_of(VOLUME("grower"), name), 40 * MIB, &why);
        snprintf(name, sizeof name, "kept-%d", round);
        SUCCEEDS(copy(VOLUME("grower"), SNAPSHOT(name), 0));
        if (held > 34 * MIB)
            EXPECT(comes_to(VOLUME("grower"), true));
    }
    EXPECT(held <= 68 * MIB);
    if (held > 68 * MIB)
        fprintf(stderr, "    it holds %llu MiB\n", (unsigned long long)held / MIB);
    /* With less in it than its size it can be written to again, whatever the snapshots keep. */
    for (int round = 0; round < 4; round++) {
        snprintf(name, sizeof name, "file-%d", round);
        unlink(path_of(VOLUME("grower"), name));
    }
    EXPECT(comes_to(VOLUME("grower"), false));
    SUCCEEDS(drop(VOLUME("grower")));
    for (int round = 0; round < 4; round++) {
        snprintf(name, sizeof name, "kept-%d", round);
        SUCCEEDS(drop(SNAPSHOT(name)));
    }
}

/* A clone that starts half full must be able to rewrite what it has got, too. */
static void
a_clone_can_rewrite_all_it_has(void)
{
    int why = 0;
    if (!needs_limits())
        return;
    SUCCEEDS(create(VOLUME("source"), 32 * MIB));
    EXPECT(write_until_full(path_of(VOLUME("source"), "file"), 24 * MIB, &why) == 24 * MIB);
    SUCCEEDS(copy(VOLUME("source"), VOLUME("clone"), 32 * MIB));
    for (int round = 0; round < 3; round++) {
        EXPECT(write_until_full(path_of(VOLUME("clone"), "file"), 24 * MIB, &why) == 24 * MIB);
        EXPECT(why == 0);
    }
    SUCCEEDS(drop(VOLUME("source")));
    SUCCEEDS(drop(VOLUME("clone")));
}

static void
an_image_grows_and_never_shrinks(void)
{
    struct data data = IMAGE("growing");
    struct data_settings larger = {.size_bytes = 24 * MIB}, smaller = {.size_bytes = 8 * MIB};
    struct data_usage usage;
    struct stat status;
    SUCCEEDS(create(data, 16 * MIB));
    EXPECT(fill_random(path_of(data, NULL), 15 * MIB, MIB));
    SUCCEEDS(backend_change(scene.backend, &data, &larger));
    EXPECT(stat(path_of(data, NULL), &status) == 0 && status.st_size == 24 * MIB);
    FAILS(CODE_OUT_OF_RANGE, backend_change(scene.backend, &data, &smaller));
    EXPECT(fill_random(path_of(data, NULL), 23 * MIB, MIB));
    EXPECT(stat(path_of(data, NULL), &status) == 0 && status.st_size == 24 * MIB);
    SUCCEEDS(backend_usage(scene.backend, &data, &usage));
    EXPECT(usage.total_bytes == 24 * MIB);
    SUCCEEDS(drop(data));
}

static void
check_used(struct data data, uint64_t expected)
{
    struct data_usage usage;
    if (!SUCCEEDS(backend_usage(scene.backend, &data, &usage)))
        return;
    EXPECT(usage.used_bytes + MIB >= expected && usage.used_bytes <= expected + MIB);
    if (usage.used_bytes + MIB < expected || usage.used_bytes > expected + MIB)
        fprintf(stderr, "    %llu bytes used, expected %llu\n",
                (unsigned long long)usage.used_bytes, (unsigned long long)expected);
}

/* Without waiting for anything: also what is not on the disk yet is used (btrfs knows that only with quotas). */
static void
the_use_that_is_told_is_the_use(void)
{
    struct data tree = VOLUME("used"), image = IMAGE("used"), clone = VOLUME("used-clone");
    SUCCEEDS(create(tree, 64 * MIB));
    SUCCEEDS(create(image, 64 * MIB));
    check_used(tree, 0);
    check_used(image, 0);
    EXPECT(fill_random(path_of(tree, "a"), 0, 10 * MIB));
    EXPECT(link(path_of(tree, "a"), path_of(tree, "b")) == 0);
    if (getenv("LEAVE_QUOTAS_OFF"))
        EXPECT(sync_around(tree));
    check_used(tree, 10 * MIB);
    EXPECT(fill_random(path_of(image, NULL), 30 * MIB, 5 * MIB));
    EXPECT(sync_around(tree));
    check_used(image, 5 * MIB);
    check_used(tree, 10 * MIB);
    SUCCEEDS(copy(tree, clone, 64 * MIB));
    check_used(clone, 10 * MIB);
    EXPECT(fill_random(path_of(clone, "a"), 0, 10 * MIB));
    EXPECT(fill_random(path_of(clone, "c"), 0, 3 * MIB));
    EXPECT(sync_around(tree));
    check_used(clone, 13 * MIB);
    check_used(tree, 10 * MIB);
    EXPECT(unlink(path_of(tree, "a")) == 0 && unlink(path_of(tree, "b")) == 0);
    EXPECT(sync_around(tree));
    check_used(tree, 0);
    SUCCEEDS(drop(tree));
    SUCCEEDS(drop(image));
    SUCCEEDS(drop(clone));
}

static void
the_number_of_inodes_is_told(void)
{
    struct data tree = VOLUME("counted"), clone = VOLUME("counted-clone");
    struct data_usage usage;
    /* tmpfs counts every name. */
    uint64_t expected = scene.backend->ops->is_volatile ? 4 : 3;
    SUCCEEDS(create(tree, 64 * MIB));
    SUCCEEDS(backend_usage(scene.backend, &tree, &usage));
    EXPECT(usage.used_inodes == 0);
    EXPECT(mkdir(path_of(tree, "directory"), 0755) == 0);
    EXPECT(put_text(path_of(tree, "directory/file"), "x"));
    EXPECT(link(path_of(tree, "directory/file"), path_of(tree, "link")) == 0);
    EXPECT(symlink("x", path_of(tree, "symbolic")) == 0);
    EXPECT(sync_around(tree));
    SUCCEEDS(backend_usage(scene.backend, &tree, &usage));
    EXPECT(usage.used_inodes == expected);
    SUCCEEDS(copy(tree, clone, 64 * MIB));
    SUCCEEDS(backend_usage(scene.backend, &clone, &usage));
    EXPECT(usage.used_inodes == expected);
    SUCCEEDS(drop(tree));
    SUCCEEDS(drop(clone));
}

static void
a_copy_that_does_not_fit_is_told_and_leaves_nothing(void)
{
    int why = 0;
    if (scene.backend->copies_are_instant || !needs_limits()) {
        scene.not_for_this = "copies take no room, or trees have no limits";
        return;
    }
    SUCCEEDS(create(VOLUME("large"), 32 * MIB));
    EXPECT(write_until_full(path_of(VOLUME("large"), "file"), 24 * MIB, &why) == 24 * MIB);
    FAILS(CODE_RESOURCE_EXHAUSTED, copy(VOLUME("large"), VOLUME("small"), 8 * MIB));
    EXPECT(path_of(VOLUME("small"), NULL)[0] == 0);
    SUCCEEDS(copy(VOLUME("large"), VOLUME("small"), 32 * MIB));
    SUCCEEDS(drop(VOLUME("small")));
    SUCCEEDS(drop(VOLUME("large")));
}

/* ---- a full disk ---- */

#define MOST_VOLUMES 20000u

static struct data
number(const char *name, unsigned i)
{
    char handle[32];
    snprintf(handle, sizeof handle, "%s-%u", name, i);
    return VOLUME(handle);
}

/* Makes volumes with notes until one is refused; how many there may be something of. */
static unsigned
make_until_full(void)
{
    static const char note[4096] = "x";
    struct error *error = NULL;
    unsigned made = 0;
    while (!error && made < MOST_VOLUMES) {
        struct data data = number("many", made++);
        error = create(data, MIB);
        if (!error)
            error = backend_write_note(scene.backend, &data, note, sizeof note);
    }
    FAILS(CODE_RESOURCE_EXHAUSTED, error);
    return made;
}

/* btrfs frees what is deleted some time later, and soon where the back end is tended. */
static bool
has_room_again(struct data data, uint64_t size)
{
    int why = ENOSPC;
    for (unsigned tries = 0; tries < 100 && why; tries++) {
        if (tries)
            usleep(100000);
        SUCCEEDS(backend_tend(scene.backend));
        if (write_until_full(path_of(data, "file"), size, &why) < size)
            sync_around(data);
    }
    return !why;
}

static void
a_full_disk_is_told_and_room_can_be_made(void)
{
    int why = 0;
    if (!getenv("SMALL_DISK")) {
        scene.not_for_this = "the disk is too large to fill";
        return;
    }
    SUCCEEDS(create(VOLUME("hog"), 0));
    SUCCEEDS(create(VOLUME("other"), 0));
    write_until_full(path_of(VOLUME("hog"), "file"), 1024 * MIB, &why);
    EXPECT(why == ENOSPC);
    unsigned made = make_until_full();
    SUCCEEDS(drop(VOLUME("hog")));
    for (unsigned i = 0; i < made; i++)
        SUCCEEDS(drop(number("many", i)));
    EXPECT(has_room_again(VOLUME("other"), 64 * MIB));
    SUCCEEDS(create(VOLUME("hog"), 0));
    SUCCEEDS(drop(VOLUME("hog")));
    SUCCEEDS(drop(VOLUME("other")));
}

static void
the_size_that_is_told_is_the_size_that_is_enforced(void)
{
    if (getenv("EXPECT_LIMITS"))
        EXPECT(scene.backend->enforces_tree_size);
    struct data data = VOLUME("sized");
    struct data_usage usage;
    SUCCEEDS(create(data, 32 * MIB));
    SUCCEEDS(backend_usage(scene.backend, &data, &usage));
    EXPECT(usage.total_bytes == (scene.backend->enforces_tree_size ? 32 * MIB : 0));
    SUCCEEDS(drop(data));
}

static bool
differs(struct data data, uint64_t size_bytes)
{
    struct data_settings settings = {.size_bytes = size_bytes};
    bool is_so = false;
    SUCCEEDS(backend_differs(scene.backend, &data, &settings, &is_so));
    return is_so;
}

static void
check_difference(struct data data)
{
    struct data_settings larger = {.size_bytes = 32 * MIB};
    SUCCEEDS(create(data, 16 * MIB));
    EXPECT(!differs(data, 16 * MIB));
    EXPECT(differs(data, 32 * MIB));
    SUCCEEDS(backend_change(scene.backend, &data, &larger));
    EXPECT(!differs(data, 32 * MIB));
}

static void
a_size_that_is_not_in_force_is_seen(void)
{
    struct data tree = VOLUME("differing"), image = IMAGE("differing");
    if (!scene.backend->ops->differs) {
        scene.not_for_this = "nothing of it outlasts what could undo a size";
        return;
    }
    check_difference(image);
    EXPECT(truncate(path_of(image, NULL), 16 * MIB) == 0);
    EXPECT(differs(image, 32 * MIB));
    EXPECT(!differs(image, 8 * MIB)); /* larger is no harm */
    if (scene.backend->enforces_tree_size) {
        check_difference(tree);
        SUCCEEDS(copy(tree, VOLUME("differing-clone"), 48 * MIB));
        EXPECT(!differs(VOLUME("differing-clone"), 48 * MIB));
        EXPECT(!differs(tree, 32 * MIB));
        SUCCEEDS(drop(VOLUME("differing-clone")));
        SUCCEEDS(drop(tree));
    }
    SUCCEEDS(drop(image));
}

static void
the_capacity_is_told(void)
{
    struct backend_capacity capacity;
    SUCCEEDS(backend_capacity(scene.backend, &capacity));
    EXPECT(capacity.available_bytes > 0 && capacity.available_bytes <= capacity.total_bytes);
}

const struct fact facts_of_sizes[] = {
    {"a tree is full at its size and can grow", a_tree_is_full_at_its_size_and_can_grow},
    {"a clone into a larger size has the larger size",
     a_clone_into_a_larger_size_has_the_larger_size},
    {"a size outlives a restart", a_size_outlives_a_restart},
    {"a clone without a size is not limited", a_clone_without_a_size_is_not_limited},
    {"a volume with snapshots can rewrite all it has",
     a_volume_with_snapshots_can_rewrite_all_it_has},
    {"a size holds when the snapshots have gone", a_size_holds_when_the_snapshots_have_gone},
    {"a volume with many snapshots does not grow with them",
     a_volume_with_many_snapshots_does_not_grow_with_them},
    {"a clone can rewrite all it has", a_clone_can_rewrite_all_it_has},
    {"an image grows and never shrinks", an_image_grows_and_never_shrinks},
    {"the use that is told is the use", the_use_that_is_told_is_the_use},
    {"the number of inodes is told", the_number_of_inodes_is_told},
    {"a copy that does not fit is told and leaves nothing",
     a_copy_that_does_not_fit_is_told_and_leaves_nothing},
    {"a full disk is told, and room can be made", a_full_disk_is_told_and_room_can_be_made},
    {"the size that is told is the size that is enforced",
     the_size_that_is_told_is_the_size_that_is_enforced},
    {"a size that is not in force is seen", a_size_that_is_not_in_force_is_seen},
    {"the capacity is told", the_capacity_is_told},
    {NULL, NULL},
};
