/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports an image: chunks of 1 MiB and their manifest. Only the chunks in the extents that the
 * caller tells are read. Without a base these are all that are allocated, and the others are zeros;
 * with one, all that may differ from it, and the others are those of the base.
 */
#ifndef EXPORTS_IMAGE_EXPORT_H
#define EXPORTS_IMAGE_EXPORT_H

#include "backends/backend.h"
#include "exports/image_manifest.h"

struct image_base {
    struct repository_id root;
    uint64_t size; /* at most that of the image */
};

struct image_export_options {
    struct repository *repository;
    struct repository_writer *chunks;
    int fd;
    uint64_t size;
    const struct progress *progress;
    const struct image_base *base; /* NULL: none */
    /* Gives the extents from `offset` on to the sink. */
    struct error *(*extents)(void *context, uint64_t offset, const struct extent_sink *sink);
    /* Continues an earlier export, of which `saved_chunks` are in the manifest; NULL: begins. */
    const struct repository_id *saved;
    uint64_t saved_chunks;
    /* Called now and then, when everything so far is durable. NULL: never. */
    struct error *(*save)(void *context, const struct repository_id *saved, uint64_t chunks);
    void *context;
};

struct image_export_result {
    struct repository_id root;
    uint64_t bytes_read;
};

MUST_CHECK struct error *image_export_run(const struct image_export_options *options,
                                          struct image_export_result *out);

#endif
