/* SPDX-License-Identifier: Apache-2.0 */
/* What an export is based on: see export.h. */
#ifndef VOLUMES_EXPORT_BASE_H
#define VOLUMES_EXPORT_BASE_H

#include "backends/btrfs_changes.h"
#include "exports/export_page.h"
#include "volumes/export.h"

struct export_base {
    const struct export_item *item;  /* NULL: everything has to be read */
    const char *reason;              /* why, if so; in the arena */
    struct data local;               /* of an image: the snapshot with the same contents */
    struct name_lock *lock;          /* of it */
    const struct export_item *same;  /* an export of this very snapshot, or NULL */
    const struct export_item *aside; /* the incomplete export, or NULL */
    struct btrfs_origin origin;      /* of the tree that is exported */
    bool has_origin;
};

struct export_base_request {
    struct engine *engine;
    const snapshot_record *snapshot;
    struct repository *repository;
    int fd;                 /* of a tree */
    const char *incomplete; /* the id of an export that is no base; NULL: none */
    struct arena *arena;    /* for the results */
};

/* Looks at the exports in the repository one by one: memory does not grow with their number. */
MUST_CHECK struct error *export_base_find(const struct export_base_request *request,
                                          struct export_base *out);
void export_base_release(struct export_base *base);

/*
 * Keeps a hidden copy of an image's snapshot for the next export. `handle` is "" if that is not
 * useful, or not possible.
 */
void export_base_keep(struct engine *engine, const snapshot_record *snapshot,
                      const char *repository, char handle[BACKEND_HANDLE_SIZE]);

/* Deletes what was kept for an export that has failed. */
void export_base_forget(struct engine *engine, const char *handle);

#endif
