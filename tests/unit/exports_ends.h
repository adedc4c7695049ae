/* SPDX-License-Identifier: Apache-2.0 */
/* Exports to and imports from a repository in a directory, for unit tests. */
#ifndef UNIT_EXPORTS_ENDS_H
#define UNIT_EXPORTS_ENDS_H

#include <fcntl.h>
#include <stdlib.h>

#include "exports/export_record.h"
#include "exports/image_export.h"
#include "exports/image_import.h"
#include "exports/tree_export.h"
#include "exports/tree_import.h"
#include "repository_ends.h"

static inline void
ignore_report(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    CHECK(done <= total);
}

static inline bool
is_never_cancelled(void *context)
{
    (void)context;
    return false;
}

static const struct progress no_progress = {ignore_report, is_never_cancelled, NULL, NULL};

/* Runs a shell command with the two directories as $1 and $2. */
static inline int
run_shell(const char *script, const char *first, const char *second)
{
    char command[4096];
    snprintf(command, sizeof command, "set -e; set -- '%s' '%s'; %s", first, second, script);
    return system(command);
}

static inline struct error *
export_tree(struct ends *ends, const char *path, const struct tree_base *base,
            struct tree_export_result *out)
{
    struct repository_writer *writer AUTO(repository_writer_cleanup) = NULL;
    struct error *error = repository_writer_open(ends->repository, &writer);
    if (error)
        return error;
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct tree_export_options options = {.repository = ends->repository,
                                          .chunks = writer,
                                          .root = root,
                                          .work_directory = ends->directory,
                                          .progress = &no_progress,
                                          .base = base};
    error = tree_export_run(&options, out);
    close(root);
    return error ? error : repository_writer_flush(writer);
}

static inline struct error *
import_tree(struct ends *ends, const struct repository_id *root, const char *path)
{
    int target = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct tree_import_options options = {.repository = ends->repository,
                                          .root = *root,
                                          .target = target,
                                          .work_directory = ends->directory,
                                          .progress = &no_progress};
    struct error *error = tree_import_run(&options);
    close(target);
    return error;
}

/* The trees are the same: names, contents, and everything that is kept about entries. */
#define COMPARE_TREES                                                                              \
    "describe() { (cd \"$1\" && find . -printf '%p %y %m %U %G %T@ %l %s %n\\n' | LC_ALL=C sort "  \
    "| "                                                                                           \
    "sed '/ d /s/ [0-9]* [0-9]*$//'; "                                                             \
    "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum); }; "                      \
    "describe \"$1\" > \"$2.first\"; describe \"$2\" > \"$2.second\"; "                            \
    "diff \"$2.first\" \"$2.second\" >&2"

#endif
