/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting a tree: see tree_export.h. */
#include "exports/tree_export.h"

#include "base/clock.h"

static struct error *
resume(struct tree_export *export)
{
    bool is_there = false;
    struct error *error = tree_writer_resume(export->writer, export->options->repository,
                                             export->options->saved, &export->last_key, &is_there);
    if (!is_there)
        export->last_key.size = 0;
    export->source.counts.bytes = tree_writer_sum(export->writer).bytes;
    export->saved_bytes = export->source.counts.bytes;
    return error;
}

static struct error *
run(struct tree_export *export, struct tree_export_result *out)
{
    const struct tree_export_options *options = export->options;
    struct tree_source_options source = {
        .root = options->root,
        .repository = options->repository,
        .chunks = options->chunks,
        .writer = export->writer,
        .work_directory = options->work_directory,
        .progress = options->progress,
        .expected_bytes = options->expected_bytes,
    };
    struct error *error = tree_source_open(&export->source, &source);
    if (!error && options->saved)
        error = resume(export);
    if (!error)
        error = options->base ? tree_merge_run(export) : tree_scan_walk(export, "");
    if (!error)
        error = tree_writer_finish(export->writer, &out->root);
    out->sum = tree_writer_sum(export->writer);
    out->bytes_read = export->source.counts.bytes_read;
    out->entries_read = export->source.counts.files + export->source.counts.directories;
    return error;
}

struct error *
tree_export_run(const struct tree_export_options *options, struct tree_export_result *out)
{
    struct tree_export export = {.options = options,
                                 .writer = tree_writer_new(options->chunks),
                                 .ahead = tree_ahead_new(),
                                 .saved_ms = clock_now_ms()};
    struct error *error = run(&export, out);
    tree_source_close(&export.source);
    tree_ahead_free(export.ahead);
    tree_writer_free(export.writer);
    cache_db_close(export.waiting);
    buffer_clear(&export.last_key);
    return error;
}
