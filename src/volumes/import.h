/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes made from snapshots in a repository. A long copy (copy.h) makes the volume: its row is
 * COPYING until all data is there. What was imported before a crash is not imported again.
 */
#ifndef VOLUMES_IMPORT_H
#define VOLUMES_IMPORT_H

#include "exports/export_record.h"
#include "volumes/volume.h"

#define IMPORT_SNAPSHOT "import-snapshot" /* the kind of operation */

struct import_request {
    const char *repository;
    const char *snapshot; /* its id there, the beginning of it, or its name */
    const char *name;     /* of the volume */
    struct text_map parameters;
    int64_t required_bytes; /* 0: as the exported one */
    uint64_t wait_ms;
};

/* As volume_create. `*id` is the snapshot's id in the repository, in the arena. */
MUST_CHECK struct error *import_volume(struct engine *engine, const struct import_request *request,
                                       struct arena *arena, const char **id, volume_record **out);

/* Whether the data of the volume is being imported. */
bool import_is_running(const volume_record *volume);

/*
 * Makes the data of the volume, durably. The caller deletes the row import/HANDLE together with the
 * write that makes the volume valid, or removes it.
 */
MUST_CHECK struct error *import_data(struct engine *engine, const volume_record *volume,
                                     const struct data_settings *settings,
                                     const struct progress *progress);

#endif
