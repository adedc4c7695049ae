/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports a directory tree: its manifest and everything that it refers to.
 *
 * Without a base everything is read. With one, only the entries that are listed in `changes` are
 * looked at; everything else is taken from the base's manifest, most of it unread.
 */
#ifndef EXPORTS_TREE_EXPORT_H
#define EXPORTS_TREE_EXPORT_H

#include "backends/backend.h"
#include "backends/btrfs_changes.h"
#include "exports/tree_ahead.h"
#include "exports/tree_source.h"
#include "repository/repository.h"

struct tree_base {
    struct repository_id root; /* the manifest of the earlier export */
    struct btrfs_origin origin;
};

struct tree_export_options {
    struct repository *repository;
    struct repository_writer *chunks;
    int root;                   /* of the tree */
    const char *work_directory; /* for temporary files */
    const struct progress *progress;
    uint64_t expected_bytes;      /* a guess, for the progress */
    const struct tree_base *base; /* NULL: none */
    /* Continues an export with the same base, or without one; NULL: begins. */
    const struct repository_id *saved;
    /* Called now and then, when everything up to there is durable. NULL: never. */
    struct error *(*save)(void *context, const struct repository_id *saved);
    void *context;
};

struct tree_export_result {
    struct repository_id root;
    struct tree_sum sum;
    uint64_t bytes_read;
    uint64_t entries_read; /* looked at */
};

MUST_CHECK struct error *tree_export_run(const struct tree_export_options *options,
                                         struct tree_export_result *out);

/* ---- internal: tree_scan.c and tree_merge.c ---- */

struct tree_export {
    const struct tree_export_options *options;
    struct tree_source source;
    struct tree_writer *writer;
    struct tree_ahead *ahead;
    struct cache_db *waiting; /* the directories that a walk has found and not listed yet */
    struct buffer last_key;   /* everything up to here was exported before; empty: nothing */
    uint64_t saved_ms, saved_bytes;
};

/* Whether the entry with this key was exported before. */
bool tree_export_has(const struct tree_export *export, const void *key, size_t size);

/* Called after each entry. Saves where the export is, if it is time and a leaf has just ended. */
MUST_CHECK struct error *tree_export_save(struct tree_export *export);

/* Exports the directory and everything below it. */
MUST_CHECK struct error *tree_scan_walk(struct tree_export *export, const char *path);
MUST_CHECK struct error *tree_merge_run(struct tree_export *export);

#endif
