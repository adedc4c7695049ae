/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills an empty directory with an exported tree: modes, owners, times of modification, extended
 * attributes (with access lists and capabilities), hard links, symbolic links, devices, holes.
 * Times of access become those of modification.
 */
#ifndef EXPORTS_TREE_IMPORT_H
#define EXPORTS_TREE_IMPORT_H

#include "backends/backend.h"
#include "exports/tree_manifest.h"

struct tree_import_options {
    struct repository *repository;
    struct repository_id root;  /* the manifest */
    int target;                 /* the directory; empty, or with what an import has left */
    const char *work_directory; /* for temporary files */
    const struct progress *progress;
    uint64_t expected_bytes; /* of all files */
    uint64_t saved_leaves;   /* an earlier import has made and saved these */
    /* Called now and then, when this many leaves are durable. NULL: never. */
    struct error *(*save)(void *context, uint64_t leaves);
    void *context;
};

/* Durable when it returns. */
MUST_CHECK struct error *tree_import_run(const struct tree_import_options *options);

#endif
