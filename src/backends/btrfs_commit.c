/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of the file system: see btrfs.h. */
#include <btrfsutil.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "backends/btrfs.h"
#include "base/clock.h"

#define START_MS 50 /* how soon a requested commit begins */

/*
 * Also writes all dirty data of the file system. Starting a commit and waiting for it
 * (BTRFS_IOC_START_SYNC) would not, but was rejected: the kernel's commit thread may miss the
 * wakeup, and then all callers hang until its next turn, for up to half a minute.
 */
struct error *
btrfs_commit(const struct btrfs_backend *btrfs)
{
    if (btrfs_util_sync_fd(btrfs->base.root) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "make a change durable");
    return NULL;
}

struct start {
    int root;
    sem_t has_begun;
};

static void *
start_sync(void *context)
{
    struct start *start = context;
    uint64_t ignored;
    btrfs_util_start_sync_fd(start->root, &ignored);
    sem_post(&start->has_begun);
    return NULL;
}

/*
 * BTRFS_IOC_START_SYNC wakes the kernel's commit thread and returns when the commit has begun. If
 * the thread is just finishing another commit, it misses the wakeup, and the call returns only
 * after half a minute. A sync commits by itself, which lets that call return.
 */
void
btrfs_start_commit(struct btrfs_backend *btrfs)
{
    struct start start = {.root = btrfs->base.root};
    struct timespec late = clock_after_ms(START_MS);
    pthread_t thread;
    sem_init(&start.has_begun, 0, 0);
    bool has_thread = pthread_create(&thread, NULL, start_sync, &start) == 0;
    if (!has_thread || sem_clockwait(&start.has_begun, CLOCK_MONOTONIC, &late) != 0)
        btrfs_util_sync_fd(start.root);
    if (has_thread)
        pthread_join(thread, NULL);
    sem_destroy(&start.has_begun);
}
