/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of several volumes at one instant, without freezing anything.
 *
 * Snapshots that join the same btrfs transaction are taken together when it commits. So a commit is
 * started, and while it runs one thread per volume requests its snapshot: all of them wait for the
 * next transaction. Each snapshot records its transaction (otransid): if all are the same, the
 * group was taken at one instant; otherwise it is discarded and tried again. Each snapshot has its
 * own parent directory (its holder), because the kernel keeps that directory locked until the
 * commit.
 */
#include <btrfsutil.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "backends/btrfs.h"
#include "backends/layout.h"
#include "base/files.h"
#include "base/memory.h"

#define MOST_TRIES 20
#define STACK_BYTES (256u << 10)

/* Locked for writing until all threads are there. */
struct gate {
    pthread_rwlock_t lock;
    bool is_off; /* there is nothing to do */
};

struct member {
    pthread_t thread;
    struct gate *gate;
    const char *name;
    int source; /* subvolume */
    int holder; /* of the snapshot */
    int failed; /* value of errno */
    uint64_t transaction;
};

static void *
take_snapshot(void *argument)
{
    struct member *member = argument;
    pthread_rwlock_rdlock(&member->gate->lock);
    bool is_off = member->gate->is_off;
    pthread_rwlock_unlock(&member->gate->lock);
    if (!is_off && btrfs_util_create_snapshot_fd2(member->source, member->holder, member->name,
                                                  BTRFS_UTIL_CREATE_SNAPSHOT_READ_ONLY, NULL,
                                                  NULL) != BTRFS_UTIL_OK)
        member->failed = errno ? errno : EIO;
    return NULL;
}

/* Returns how many threads wait at the gate. */
static size_t
start_threads(struct member *members, size_t count, struct gate *gate)
{
    size_t started = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (; started < count; started++) {
        members[started].gate = gate;
        members[started].failed = 0;
        if (pthread_create(&members[started].thread, &attributes, take_snapshot,
                           &members[started]) != 0)
            break;
    }
    pthread_attr_destroy(&attributes);
    return started;
}

static struct error *
take_all_at_once(struct btrfs_backend *btrfs, struct member *members, size_t count)
{
    struct gate gate = {.lock = PTHREAD_RWLOCK_INITIALIZER};
    pthread_rwlock_wrlock(&gate.lock);
    size_t started = start_threads(members, count, &gate);
    gate.is_off = started < count;
    if (!gate.is_off)
        btrfs_start_commit(btrfs);
    pthread_rwlock_unlock(&gate.lock);
    for (size_t i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    pthread_rwlock_destroy(&gate.lock);
    if (started < count)
        return error_new(CODE_RESOURCE_EXHAUSTED, "only %zu of %zu threads could be started",
                         started, count);
    return NULL;
}

static struct error *
read_transaction(struct member *member)
{
    struct btrfs_util_subvolume_info info;
    if (member->failed)
        return error_from_errno(member->failed, "take a snapshot");
    int snapshot AUTO(files_close) = files_open_directory(member->holder, member->name);
    if (snapshot < 0 || btrfs_util_subvolume_info_fd(snapshot, 0, &info) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "look at a snapshot");
    member->transaction = info.otransid;
    return NULL;
}

/* ABORTED if they were not taken together. */
static struct error *
compare_transactions(struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct error *error = read_transaction(&members[i]);
        if (error)
            return error;
        if (members[i].transaction != members[0].transaction)
            return error_new(CODE_ABORTED, "found no common instant for %zu volumes; try again",
                             count);
    }
    return NULL;
}

static struct error *
delete_all(struct btrfs_backend *btrfs, struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct error *error = btrfs_delete_subvolume(btrfs, members[i].holder, members[i].name);
        if (error)
            return error;
    }
    return NULL;
}

static struct error *
try_until_together(struct btrfs_backend *btrfs, struct member *members, size_t count)
{
    struct error *error = NULL;
    for (unsigned tries = 0; tries < MOST_TRIES; tries++) {
        error_free(error);
        error = delete_all(btrfs, members, count);
        if (error)
            return error;
        error = take_all_at_once(btrfs, members, count);
        if (!error)
            error = compare_transactions(members, count);
        if (!error || error->code != CODE_ABORTED)
            break;
    }
    return error;
}

static struct error *
open_members(struct btrfs_backend *btrfs, const struct data *const *from,
             const struct data *const *to, const struct data_note *notes, struct member *members,
             size_t count)
{
    struct error *error = NULL;
    for (size_t i = 0; i < count && !error; i++) {
        members[i].name = layout_content(from[i]);
        error = layout_open_content(btrfs->base.root, from[i], &members[i].source);
        if (!error)
            error = layout_make_holder(btrfs->base.root, to[i], &members[i].holder);
        if (!error && notes) /* before the snapshot, whose commit includes it */
            error = btrfs_put_note(members[i].holder, &notes[i]);
    }
    return error;
}

static struct error *
note_sharing(struct btrfs_backend *btrfs, const struct data *const *from,
             const struct member *members, size_t count)
{
    struct error *error = NULL;
    for (size_t i = 0; i < count && !error; i++)
        error = btrfs_note_sharing(btrfs, from[i], members[i].source);
    return error;
}

struct error *
btrfs_snapshot_group(struct backend *backend, const struct data *const *from,
                     const struct data *const *to, const struct data_note *notes, size_t count)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    struct member *members AUTO(memory_cleanup) = memory_zeroed((count + 1) * sizeof *members);
    for (size_t i = 0; i < count; i++)
        members[i].source = members[i].holder = -1;
    struct error *error = open_members(btrfs, from, to, notes, members, count);
    if (!error)
        error = try_until_together(btrfs, members, count);
    if (!error)
        error = note_sharing(btrfs, from, members, count);
    for (size_t i = 0; i < count; i++) {
        files_close(&members[i].source);
        files_close(&members[i].holder);
        if (error)
            error_free(btrfs_remove(backend, to[i]));
    }
    return error;
}
