/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by export*.c. */
#ifndef VOLUMES_EXPORT_INTERNAL_H
#define VOLUMES_EXPORT_INTERNAL_H

#include "volumes/export_base.h"
#include "volumes/export_position.h"

/* An export in progress. */
struct exporting {
    struct engine *engine;
    struct arena arena;
    const char *operation;
    const char *repository_name;
    const char *row; /* of the position */
    snapshot_record *snapshot;
    struct name_lock *lock;
    struct error *obstacle;
    const struct progress *progress;
    uint64_t started_ms;
    struct repository_pause pause;
    const char *full_reason; /* why no base is used in this try; NULL: one may be used */
    const char *incomplete;  /* the id of an export of the snapshot that lacks chunks; or NULL */
    bool was_dead;           /* a writer of it was taken for dead */
    bool ignores_position;   /* what was exported before cannot be used */
    /* while it runs; all of it is of one try */
    struct arena try;
    struct repository_use use;
    struct repository_writer *writer;
    int fd;
    struct export_base base;
    export_position *position;
    export_record record;
    struct repository_id manifest;
};

/* ---- export_data.c ---- */

/* Opens the snapshot's data. */
MUST_CHECK struct error *export_data_open(struct exporting *export);
/* Set the manifest, and what was read in the record. */
MUST_CHECK struct error *export_data_tree(struct exporting *export);
MUST_CHECK struct error *export_data_image(struct exporting *export);

/* ---- export_commit.c ---- */

/* Writes the record to the repository. `*is_good` is false if everything has to be done again. */
MUST_CHECK struct error *export_commit_record(struct exporting *export,
                                              char name[REPOSITORY_NAME_BYTES], bool *is_good);
/* Adds the export to the snapshot's row. */
MUST_CHECK struct error *export_commit_row(struct exporting *export, const char *id,
                                           const export_record *record);

#endif
