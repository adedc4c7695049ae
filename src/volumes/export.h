/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of snapshots to repositories. An operation copies what the repository does not have yet;
 * a snapshot is in the repository when its record is there. What was exported before a crash is not
 * exported again.
 *
 * An export reads only what has changed since an earlier one of the same volume if it can tell:
 *
 *     images  by the extents that differ from a snapshot on this node with the contents of the
 *             earlier export. A hidden one is kept for that (bases.h)
 *     trees   by the generations of btrfs
 *
 * Otherwise it reads everything, and says why.
 */
#ifndef VOLUMES_EXPORT_H
#define VOLUMES_EXPORT_H

#include "exports/export_record.h"
#include "volumes/rows.h"

#define EXPORT_SNAPSHOT "export-snapshot" /* the kind of operation */

typedef Skycap__Records__SnapshotExport snapshot_export;

/* Who waits for an export: others go before those that nobody waits for. */
enum export_urgency { EXPORT_AWAITED, EXPORT_IN_BACKGROUND };

/* What is exported, and where to. */
struct export_request {
    const char *handle, *repository;
    enum export_urgency urgency;
    bool again; /* also if it was exported: what the repository has lost is stored anew */
};

/*
 * Starts the export, or finds the one that runs: `*operation` is its id, in the arena. "" if the
 * repository has the snapshot already. NOT_FOUND: the snapshot, or the repository. ABORTED: the
 * snapshot is still being copied.
 */
MUST_CHECK struct error *export_start(struct engine *engine, const struct export_request *request,
                                      struct arena *arena, const char **operation);

/* The snapshot's export to the repository; NULL if there is none. */
const snapshot_export *export_find(const snapshot_record *snapshot, const char *repository);

/*
 * Before the export is removed from the repository: no snapshot of this node has it any more. If it
 * is not removed then, the next export of the snapshot finds it again.
 */
MUST_CHECK struct error *export_forget(struct engine *engine, const char *repository,
                                       const char *id);

/* The id of the operation that exports a snapshot to a repository, whether there is one or not. */
const char *export_operation(const char *handle, const char *repository, struct arena *arena);

/* Called at start. */
MUST_CHECK struct error *export_resume_all(struct engine *engine);

#endif
