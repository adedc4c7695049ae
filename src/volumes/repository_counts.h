/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of exports and drills by repository, since the start of the process, for metrics. The time
 * of the last export is in the store. Any thread.
 */
#ifndef VOLUMES_REPOSITORY_COUNTS_H
#define VOLUMES_REPOSITORY_COUNTS_H

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"

enum repository_end {
    REPOSITORY_SUCCEEDED,
    REPOSITORY_FAILED,
    REPOSITORY_CANCELLED,
    REPOSITORY_ENDS,
};

struct repository_count {
    uint64_t exports[REPOSITORY_ENDS];
    uint64_t read_bytes;
    uint64_t stored_bytes;
    uint64_t drills[REPOSITORY_ENDS];
    uint64_t drill_ms; /* of those that have succeeded */
};

struct repository_counts;

struct repository_counts *repository_counts_new(void);
void repository_counts_free(struct repository_counts *counts);

enum repository_end repository_counts_end_of(const struct error *result);

/* `add`: what is added to the repository's counts. More than 64 repositories are not counted. */
void repository_counts_add(struct repository_counts *counts, const char *repository,
                           const struct repository_count *add);

/* All zero if there was nothing to count. */
struct repository_count repository_counts_get(struct repository_counts *counts,
                                              const char *repository);

/* The change that notes a successful export that ends now. In the arena. */
struct store_change repository_counts_note_export(const char *repository, struct arena *arena);

/* In Unix time; 0: never, or not known. */
MUST_CHECK struct error *repository_counts_last_export(struct store *store, const char *repository,
                                                       int64_t *ns);

#endif
