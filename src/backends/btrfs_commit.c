/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of the file system: see btrfs.h. */
#include <btrfsutil.h>
#include <errno.h>
#include <pthread.h>

#include "backends/btrfs.h"
#include "base/clock.h"

#define START_MS 50 /* within which a commit begins that was asked for */

/*
 * It writes all that is dirty in the file system, too. To start a commit and wait for it
 * (BTRFS_IOC_START_SYNC) would not, and was rejected: the kernel's thread that commits may miss
 * that it was woken, and then all who asked hang until its next turn, for up to half a minute.
 */
struct error *
btrfs_commit(const struct btrfs_backend *btrfs)
{
    if (btrfs_util_sync_fd(btrfs->base.root) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "make a change durable");
    return NULL;
}

static void *
start_sync(void *context)
{
    const struct btrfs_backend *btrfs = context;
    uint64_t ignored;
    btrfs_util_start_sync_fd(btrfs->base.root, &ignored);
    return NULL;
}

/*
 * BTRFS_IOC_START_SYNC wakes the kernel's thread that commits, and returns when that has begun. If
 * the thread is at the end of another commit it misses the call, which returns after half a minute
 * then. A sync commits by itself, and that lets the call return.
 */
void
btrfs_start_commit(struct btrfs_backend *btrfs)
{
    pthread_t thread;
    struct timespec late = clock_after_ms(START_MS);
    bool has_thread = pthread_create(&thread, NULL, start_sync, btrfs) == 0;
    if (has_thread && pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &late) == 0)
        return;
    btrfs_util_sync_fd(btrfs->base.root);
    if (has_thread)
        pthread_join(thread, NULL);
}
