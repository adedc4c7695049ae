/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the btrfs back end share. */
#ifndef BACKENDS_BTRFS_H
#define BACKENDS_BTRFS_H

#include <stdatomic.h>

#include "backends/backend.h"
#include "backends/btrfs_nested.h"
#include "backends/btrfs_quota.h"
#include "backends/btrfs_sharing.h"
#include "backends/pool.h"

/*
 * With simple quotas, the accounts of deleted subvolumes stay if their data is still in use
 * elsewhere. A sweep runs after this many removals, or after as many as there are accounts, so a
 * removal pays for examining one account at most.
 */
#define BTRFS_SMALLEST_SWEEP 4096u

struct btrfs_backend {
    struct backend base; /* must be first */
    struct pool *pool;   /* NULL: the directory is on btrfs itself */
    const struct log *log;
    struct btrfs_quota quota;
    struct btrfs_nested nested;   /* for the background thread */
    struct btrfs_sharing sharing; /* for the same */
    struct btrfs_accounts accounts;
    atomic_size_t removed;     /* since the last sweep of quota accounts */
    atomic_size_t sweep_after; /* the number of removals that starts a sweep */
    atomic_bool wants_room;    /* something was deleted while it was nearly full */
};

static inline struct btrfs_backend *
btrfs_of(struct backend *backend)
{
    return (struct btrfs_backend *)backend;
}

/* ---- btrfs_commit.c ---- */

/*
 * Makes everything that was changed until now durable, including what users have written to files.
 * Calls at the same time share a commit.
 */
MUST_CHECK struct error *btrfs_commit(const struct btrfs_backend *btrfs);

/*
 * Returns when a commit has begun: changes from then on belong to the next transaction. If that
 * takes too long, returns when the commit has ended.
 */
void btrfs_start_commit(struct btrfs_backend *btrfs);

/* ---- btrfs_note.c ---- */

/* Writes the note as an attribute of the holder. Settings may have none. */
MUST_CHECK struct error *btrfs_put_note(int holder, const struct data_note *note);

/* ---- btrfs_remove.c ---- */

/* Deletes the subvolume of this name with all that are nested in it; success if there is none. */
MUST_CHECK struct error *btrfs_delete_subvolume(struct btrfs_backend *btrfs, int holder,
                                                const char *name);

/*
 * Removes the quota accounts of deleted subvolumes. Later sweeps find those that cannot be removed
 * now.
 */
void btrfs_sweep_accounts(struct btrfs_backend *btrfs);

/* ---- btrfs_make.c ---- */

/*
 * Called when a snapshot or clone of `data` has been made: what it shares from now on is not
 * counted against it. `tree` is the open subvolume.
 */
MUST_CHECK struct error *btrfs_note_sharing(struct btrfs_backend *btrfs, const struct data *data,
                                            int tree);

/* ---- see backend_ops ---- */

struct error *btrfs_create(struct backend *backend, const struct data *data,
                           const struct data_settings *settings);
struct error *btrfs_copy(struct backend *backend, const struct data *from, const struct data *to,
                         const struct data_settings *settings, const struct progress *progress);
struct error *btrfs_change(struct backend *backend, const struct data *data,
                           const struct data_settings *settings);
struct error *btrfs_differs(struct backend *backend, const struct data *data,
                            const struct data_settings *settings, bool *differs);
struct error *btrfs_snapshot_group(struct backend *backend, const struct data *const *from,
                                   const struct data *const *to, const struct data_note *notes,
                                   size_t count);
struct error *btrfs_remove(struct backend *backend, const struct data *data);
struct error *btrfs_write_note(struct backend *backend, const struct data *data, const void *note,
                               size_t size);
struct error *btrfs_read_note(struct backend *backend, const struct data *data, void *note,
                              size_t room, size_t *size);

#endif
