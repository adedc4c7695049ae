/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend-figures BACK-END DIRECTORY [PRESENT]: how long the functions of a back end take, in microseconds, with so many empty volumes
 * beside.
 */
#include <btrfsutil.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/backend.h"

#define ROUNDS 300u
#define MIB (1u << 20)

static struct backend *backend;
static const struct log quiet = {.level = LOG_WARN, .fd = 2};

static void
must(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", error_code_name(error->code), error->message);
    exit(1);
}

static double
now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int
compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void
print_figure(const char *what, double *times, unsigned count)
{
    qsort(times, count, sizeof *times, compare);
    printf("%-36s p50 %9.0f us   p99 %9.0f us\n", what, times[count / 2], times[count * 99 / 100]);
}

static struct data
name(enum data_role role, enum volume_kind kind, const char *prefix, unsigned number)
{
    struct data data = {.role = role, .kind = kind};
    snprintf(data.handle, sizeof data.handle, "%s-%u", prefix, number);
    return data;
}

typedef void step(unsigned number);

static void
measure(const char *what, unsigned rounds, step *act, step *undo)
{
    double times[ROUNDS];
    for (unsigned i = 0; i < rounds; i++) {
        double start = now_us();
        act(i);
        times[i] = now_us() - start;
        if (undo)
            undo(i);
    }
    print_figure(what, times, rounds);
}

/* Two ways, taking turns: whatever else the machine does meets both. */
static void
compare_ways(const char *bare, step *act_bare, const char *ours, step *act, unsigned rounds)
{
    double bare_times[ROUNDS], times[ROUNDS];
    for (unsigned i = 0; i < rounds; i++) {
        double start = now_us();
        act_bare(i);
        double middle = now_us();
        act(i);
        bare_times[i] = middle - start;
        times[i] = now_us() - middle;
    }
    print_figure(bare, bare_times, rounds);
    print_figure(ours, times, rounds);
}

static const struct data_settings gigabyte = {.size_bytes = 1024ull * MIB};

static void
create(unsigned i)
{
    struct data data = name(ROLE_VOLUME, KIND_TREE, "v", i);
    must(backend_create(backend, &data, &gigabyte));
}

static void
write_note(unsigned i)
{
    static const char note[600] = "a row of the usual size";
    struct data data = name(ROLE_VOLUME, KIND_TREE, "v", i);
    must(backend_write_note(backend, &data, note, sizeof note));
}

/* With btrfs two of 60 looks are at all subvolumes: they are the p99. */
static void
tend(unsigned i)
{
    (void)i;
    must(backend_tend(backend));
}

static void
read_usage(unsigned i)
{
    struct data data = name(ROLE_VOLUME, KIND_TREE, "v", i);
    struct data_usage usage;
    must(backend_usage(backend, &data, &usage));
}

static void
drop(unsigned i)
{
    struct data data = name(ROLE_VOLUME, KIND_TREE, "v", i);
    must(backend_remove(backend, &data));
}

static void
put_file(const struct data *data, const char *file, uint64_t offset, size_t size)
{
    char path[4096];
    must(backend_path(backend, data, path, sizeof path));
    if (file)
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", file);
    char *bytes = malloc(size);
    for (size_t i = 0; bytes && i < size; i++)
        bytes[i] = (char)(i * 31 + offset);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (!bytes || fd < 0 || pwrite(fd, bytes, size, (off_t)offset) != (ssize_t)size)
        must(error_from_errno(errno, "write %s", path));
    close(fd);
    free(bytes);
}

static void
clone_tree(unsigned i)
{
    struct data from = name(ROLE_VOLUME, KIND_TREE, "source", 0);
    struct data to = name(ROLE_VOLUME, KIND_TREE, "v", i);
    must(backend_copy(backend, &from, &to, &gigabyte, NULL));
}

static void
snapshot_tree(unsigned i)
{
    struct data from = name(ROLE_VOLUME, KIND_TREE, "source", 0);
    struct data to = name(ROLE_SNAPSHOT, KIND_TREE, "s", i);
    must(backend_copy(backend, &from, &to, NULL, NULL));
}

static void
drop_snapshot(unsigned i)
{
    struct data data = name(ROLE_SNAPSHOT, KIND_TREE, "s", i);
    must(backend_remove(backend, &data));
}

static void
clone_image(unsigned i)
{
    struct data from = name(ROLE_VOLUME, KIND_IMAGE, "image", 0);
    struct data to = name(ROLE_VOLUME, KIND_IMAGE, "image-copy", i);
    must(backend_copy(backend, &from, &to, &gigabyte, NULL));
}

static void
drop_image(unsigned i)
{
    struct data data = name(ROLE_VOLUME, KIND_IMAGE, "image-copy", i);
    must(backend_remove(backend, &data));
}

#define GROUP 4u

static void
snapshot_group(unsigned i)
{
    struct data from[GROUP], to[GROUP];
    const struct data *sources[GROUP], *snapshots[GROUP];
    for (unsigned j = 0; j < GROUP; j++) {
        from[j] = name(ROLE_VOLUME, KIND_TREE, "member", j);
        to[j] = name(ROLE_SNAPSHOT, KIND_TREE, "group", i * GROUP + j);
        sources[j] = &from[j];
        snapshots[j] = &to[j];
    }
    must(backend_snapshot_group(backend, sources, snapshots, NULL, GROUP));
}

static void
drop_group(unsigned i)
{
    for (unsigned j = 0; j < GROUP; j++) {
        struct data data = name(ROLE_SNAPSHOT, KIND_TREE, "group", i * GROUP + j);
        must(backend_remove(backend, &data));
    }
}

static struct error *
count_entry(void *context, const struct backend_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return NULL;
}

static void
list_all(unsigned i)
{
    unsigned count = 0;
    (void)i;
    must(backend_list(backend, count_entry, &count));
}

static void
use_of_clone(unsigned i)
{
    (void)i;
    read_usage(0);
}

/* ---- the system calls alone ---- */

/* The path of the directory that holds a volume's holder, from a volume that is there. */
static int
make_bare_holder(const struct data *beside, unsigned number)
{
    char path[4096];
    must(backend_path(backend, beside, path, sizeof path));
    char *handle = strstr(path, beside->handle);
    snprintf(handle, sizeof path - (size_t)(handle - path), "bare-%u", number);
    if (mkdir(path, 0700) != 0)
        must(error_from_errno(errno, "make %s", path));
    return open(path, O_RDONLY | O_DIRECTORY);
}

static void
create_bare(unsigned i)
{
    struct data beside = name(ROLE_VOLUME, KIND_TREE, "beside", 0);
    struct btrfs_ioctl_vol_args_v2 arguments = {.name = "tree"};
    int holder = make_bare_holder(&beside, i);
    if (ioctl(holder, BTRFS_IOC_SUBVOL_CREATE_V2, &arguments) != 0)
        must(error_from_errno(errno, "make a subvolume"));
    close(holder);
}

static void
clone_bare(unsigned i)
{
    struct data source = name(ROLE_VOLUME, KIND_TREE, "source", 0);
    struct btrfs_ioctl_vol_args_v2 arguments = {.name = "tree"};
    char path[4096];
    must(backend_path(backend, &source, path, sizeof path));
    int tree = open(path, O_RDONLY | O_DIRECTORY);
    int holder = make_bare_holder(&source, i);
    arguments.fd = tree;
    if (ioctl(holder, BTRFS_IOC_SNAP_CREATE_V2, &arguments) != 0)
        must(error_from_errno(errno, "take a snapshot"));
    close(tree);
    close(holder);
}

static void
drop_bare(unsigned i)
{
    struct data data = name(ROLE_VOLUME, KIND_TREE, "bare", i);
    must(backend_remove(backend, &data));
}

#define AT_ONCE 16u

static void *
clone_some(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; i < 10; i++)
        clone_tree(number * 10 + i);
    return NULL;
}

/* Clones of several threads share the commits of btrfs. */
static void
measure_clones_at_once(void)
{
    pthread_t threads[AT_ONCE];
    double start = now_us();
    for (uintptr_t i = 0; i < AT_ONCE; i++)
        pthread_create(&threads[i], NULL, clone_some, (void *)i);
    for (unsigned i = 0; i < AT_ONCE; i++)
        pthread_join(threads[i], NULL);
    double each = (now_us() - start) / (AT_ONCE * 10);
    printf("%-36s     %9.0f us each\n", "clone, 16 threads", each);
    for (unsigned i = 0; i < AT_ONCE * 10; i++)
        drop(i);
}

/* Waits until deleted subvolumes are really gone (at most a minute), so that the next figure does not pay for them. */
static void
settle(void)
{
    struct data source = name(ROLE_VOLUME, KIND_TREE, "source", 0);
    char path[4096];
    size_t left = backend->copies_are_instant;
    must(backend_path(backend, &source, path, sizeof path));
    sync();
    for (unsigned i = 0; i < 60 && left; i++) {
        uint64_t *ids = NULL;
        if (btrfs_util_sync(path) || btrfs_util_deleted_subvolumes(path, &ids, &left))
            must(error_from_errno(errno, "wait for deleted subvolumes"));
        free(ids);
        sleep(left ? 1 : 0);
    }
}

/* Volumes that are copied in no time are subvolumes, and can be compared with one. */
static void
measure_creates(bool instant)
{
    struct data beside = name(ROLE_VOLUME, KIND_TREE, "beside", 0);
    if (!instant) {
        measure("create", ROUNDS, create, NULL);
        return;
    }
    must(backend_create(backend, &beside, &gigabyte));
    compare_ways("create, bare system calls", create_bare, "create", create, ROUNDS);
    for (unsigned i = 0; i < ROUNDS; i++)
        drop_bare(i);
    must(backend_remove(backend, &beside));
}

static void
measure_clones(bool instant, unsigned rounds)
{
    const char *what = "clone, tree of 10,000 files";
    if (instant)
        compare_ways("clone, bare system calls", clone_bare, what, clone_tree, rounds);
    else
        measure(what, rounds, clone_tree, NULL);
    measure("use of a clone", 5, use_of_clone, NULL);
    for (unsigned i = 0; i < rounds; i++) {
        drop_bare(i);
        drop(i);
    }
}

static void
measure_snapshots(bool instant, unsigned rounds)
{
    const char *what = "snapshot, tree of 10,000 files";
    if (instant)
        compare_ways("snapshot, bare system calls", clone_bare, what, snapshot_tree, rounds);
    else
        measure(what, rounds, snapshot_tree, NULL);
    for (unsigned i = 0; i < rounds; i++) {
        drop_bare(i);
        drop_snapshot(i);
    }
}

static void
measure_copies(bool instant)
{
    unsigned rounds = instant ? 50 : 5;
    struct data source = name(ROLE_VOLUME, KIND_TREE, "source", 0);
    struct data image = name(ROLE_VOLUME, KIND_IMAGE, "image", 0);
    must(backend_create(backend, &source, &gigabyte));
    must(backend_create(backend, &image, &gigabyte));
    for (unsigned i = 0; i < 10000; i++) {
        char file[32];
        snprintf(file, sizeof file, "file-%u", i);
        put_file(&source, file, 0, 8192);
    }
    for (unsigned i = 0; i < 1024; i += 16)
        put_file(&image, NULL, (uint64_t)i * MIB, 16u * MIB);
    sync();
    measure_clones(instant, rounds);
    settle();
    if (instant)
        measure_clones_at_once();
    settle();
    measure_snapshots(instant, rounds);
    settle();
    measure("clone, image with 1 GiB of data", rounds, clone_image, NULL);
    for (unsigned i = 0; i < rounds; i++)
        drop_image(i);
    must(backend_remove(backend, &source));
    must(backend_remove(backend, &image));
}

static void
measure_groups(void)
{
    for (unsigned i = 0; i < GROUP; i++) {
        struct data data = name(ROLE_VOLUME, KIND_TREE, "member", i);
        must(backend_create(backend, &data, &gigabyte));
        put_file(&data, "file", 0, 8192);
    }
    measure("group snapshot of 4", 100, snapshot_group, drop_group);
    for (unsigned i = 0; i < GROUP; i++) {
        struct data data = name(ROLE_VOLUME, KIND_TREE, "member", i);
        must(backend_remove(backend, &data));
    }
}

int
main(int count, char **arguments)
{
    unsigned present = count > 3 ? (unsigned)strtoul(arguments[3], NULL, 10) : 0;
    if (count < 3)
        return 2;
    struct backend_options options = {.directory = arguments[2],
                                      .log = &quiet,
                                      .may_switch_quotas_on = !getenv("LEAVE_QUOTAS_OFF")};
    must(backend_open(arguments[1], &options, &backend));
    for (unsigned i = 0; i < present; i++) {
        struct data data = name(ROLE_VOLUME, KIND_TREE, "present", i);
        must(backend_create(backend, &data, &gigabyte));
    }
    measure_creates(backend->copies_are_instant);
    measure("write a note of 600 bytes", ROUNDS, write_note, NULL);
    measure("use", ROUNDS, read_usage, NULL);
    measure("list all", 10, list_all, NULL);
    if (backend->ops->tend)
        measure("tend", 60, tend, NULL);
    measure("remove", ROUNDS, drop, NULL);
    if (backend->ops->snapshot_group)
        measure_groups();
    measure_copies(backend->copies_are_instant);
    for (unsigned i = 0; i < present; i++) {
        struct data data = name(ROLE_VOLUME, KIND_TREE, "present", i);
        must(backend_remove(backend, &data));
    }
    backend_close(backend);
    return 0;
}
