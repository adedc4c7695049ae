/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system calls under a CSI driver cost without the driver, as the limit of what it can reach:
 *
 *     bare-storage subvolumes DIRECTORY SECONDS THREADS          a btrfs subvolume made and deleted, again and again
 *     bare-storage snapshots DIRECTORY SECONDS SUBVOLUME COUNT   a snapshot of it made and deleted, at most so often
 *     bare-storage mounts DIRECTORY SECONDS                      a bind mount made and unmounted
 *
 * Prints one line of JSON in the form of tests/peers/go/cmd/csi-bench. DIRECTORY must be there; nothing stays in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_SAMPLES (1u << 20)
#define MAX_THREADS 64

struct worker {
    pthread_t thread;
    char path[512]; /* a directory of its own */
    int directory;
    int source; /* of snapshots */
    float *times[2];
    size_t count;
};

struct kind {
    const char *verb;
    const char *names[2];
    void (*make)(struct worker *worker);
    void (*undo)(struct worker *worker);
};

static double end_us;
static size_t most_rounds = MAX_SAMPLES;

static void
check(int result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "bare-storage: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double
now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- the calls ---- */

static void
make_subvolume(struct worker *worker)
{
    struct btrfs_ioctl_vol_args_v2 arguments = {.name = "subvolume"};
    check(ioctl(worker->directory, BTRFS_IOC_SUBVOL_CREATE_V2, &arguments), "make a subvolume");
}

static void
make_snapshot(struct worker *worker)
{
    struct btrfs_ioctl_vol_args_v2 arguments = {.fd = worker->source, .name = "subvolume"};
    check(ioctl(worker->directory, BTRFS_IOC_SNAP_CREATE_V2, &arguments), "take a snapshot");
}

static void
delete_subvolume(struct worker *worker)
{
    struct btrfs_ioctl_vol_args arguments = {.name = "subvolume"};
    check(ioctl(worker->directory, BTRFS_IOC_SNAP_DESTROY, &arguments), "delete a subvolume");
}

static void
bind_mount(struct worker *worker)
{
    char target[520];
    snprintf(target, sizeof target, "%s/target", worker->path);
    check(mount(worker->path, target, NULL, MS_BIND, NULL), "mount");
}

static void
unmount(struct worker *worker)
{
    char target[520];
    snprintf(target, sizeof target, "%s/target", worker->path);
    check(umount2(target, UMOUNT_NOFOLLOW), "unmount");
}

static const struct kind kinds[] = {
    {"subvolumes", {"create", "delete"}, make_subvolume, delete_subvolume},
    {"snapshots", {"create", "delete"}, make_snapshot, delete_subvolume},
    {"mounts", {"mount", "unmount"}, bind_mount, unmount},
};

static const struct kind *kind;

/* ---- measuring ---- */

static void *
work_until_end(void *argument)
{
    struct worker *worker = argument;
    for (double start = now_us(); start < end_us && worker->count < most_rounds; worker->count++) {
        kind->make(worker);
        double made = now_us();
        kind->undo(worker);
        double undone = now_us();
        worker->times[0][worker->count] = (float)(made - start);
        worker->times[1][worker->count] = (float)(undone - made);
        start = undone;
    }
    return NULL;
}

static int
compare(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static void
print_times(const struct worker *workers, size_t threads, int which)
{
    size_t count = 0;
    double sum = 0;
    float *all = malloc(threads * MAX_SAMPLES * sizeof *all);
    for (size_t i = 0; i < threads && all; i++)
        for (size_t j = 0; j < workers[i].count; j++)
            sum += (double)(all[count++] = workers[i].times[which][j]);
    if (!count)
        exit(1);
    qsort(all, count, sizeof *all, compare);
    printf("\"%s\":{\"count\":%zu,\"mean_us\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f}",
           kind->names[which], count, sum / (double)count, (double)all[count / 2],
           (double)all[count * 99 / 100]);
    free(all);
}

static void
open_worker(struct worker *worker, const char *directory, size_t number, const char *source)
{
    char target[520];
    snprintf(worker->path, sizeof worker->path, "%s/worker-%zu", directory, number);
    snprintf(target, sizeof target, "%s/target", worker->path);
    check(mkdir(worker->path, 0700), worker->path);
    check(mkdir(target, 0700), target);
    check(worker->directory = open(worker->path, O_RDONLY | O_DIRECTORY), worker->path);
    if (source)
        check(worker->source = open(source, O_RDONLY | O_DIRECTORY), source);
    for (int i = 0; i < 2; i++)
        if (!(worker->times[i] = malloc(MAX_SAMPLES * sizeof(float))))
            exit(1);
}

static void
close_worker(struct worker *worker)
{
    char target[520];
    snprintf(target, sizeof target, "%s/target", worker->path);
    check(rmdir(target), target);
    check(rmdir(worker->path), worker->path);
}

static void
measure(struct worker *workers, size_t threads, double seconds)
{
    double start = now_us();
    end_us = start + seconds * 1e6;
    for (size_t i = 0; i < threads; i++)
        pthread_create(&workers[i].thread, NULL, work_until_end, &workers[i]);
    for (size_t i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    printf("{\"seconds\":%.3f,\"times\":{", (now_us() - start) / 1e6);
    print_times(workers, threads, 0);
    printf(",");
    print_times(workers, threads, 1);
    printf("}}\n");
}

static const struct kind *
find_kind(const char *verb)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].verb, verb))
            return &kinds[i];
    return NULL;
}

int
main(int count, char **arguments)
{
    static struct worker workers[MAX_THREADS];
    kind = count >= 4 ? find_kind(arguments[1]) : NULL;
    bool takes_snapshots = kind && kind->make == make_snapshot;
    if (!kind || (takes_snapshots && count < 6)) {
        fprintf(stderr, "usage: bare-storage subvolumes|snapshots|mounts DIRECTORY SECONDS "
                        "[THREADS|SUBVOLUME COUNT]\n");
        return 2;
    }
    size_t threads = count > 4 && !takes_snapshots ? strtoul(arguments[4], NULL, 10) : 1;
    if (takes_snapshots && strtoul(arguments[5], NULL, 10) < most_rounds)
        most_rounds = strtoul(arguments[5], NULL, 10);
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    for (size_t i = 0; i < threads; i++)
        open_worker(&workers[i], arguments[2], i, takes_snapshots ? arguments[4] : NULL);
    measure(workers, threads, strtod(arguments[3], NULL));
    for (size_t i = 0; i < threads; i++)
        close_worker(&workers[i]);
    return 0;
}
