/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which exports of directories are of the past of their file system. The others must not be a base:
 * the file system was set back to an earlier state since (btrfs_exported.h).
 */
#ifndef VOLUMES_EXPORT_PAST_H
#define VOLUMES_EXPORT_PAST_H

#include "backends/btrfs_changes.h"
#include "backends/btrfs_exported.h"
#include "volumes/export.h"

/* What is known of the volume of a snapshot; nothing if the volume is gone. */
void export_past_read(struct engine *engine, const snapshot_record *snapshot,
                      struct btrfs_exported *out);

/* Whether the snapshot was noted when it was exported, or is still here. */
bool export_past_has(struct engine *engine, const struct btrfs_exported *exported,
                     const export_record *record);

/* Without it, the next export may have to read everything, and says so. */
void export_past_note(struct engine *engine, const snapshot_record *snapshot,
                      const struct btrfs_origin *origin);

#endif
