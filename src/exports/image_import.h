/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the contents of an exported image to a file that is all zeros, several chunks at a time.
 * Zeros are not written: the file stays sparse.
 */
#ifndef EXPORTS_IMAGE_IMPORT_H
#define EXPORTS_IMAGE_IMPORT_H

#include "backends/backend.h"
#include "exports/image_manifest.h"

struct image_import_options {
    struct repository *repository;
    struct repository_id root;
    uint64_t size; /* of the image; the file is not smaller */
    int fd;
    const struct progress *progress;
    uint64_t saved_chunks; /* an earlier import has written and saved these */
    /* Called now and then, when this many chunks are durable. NULL: never. */
    struct error *(*save)(void *context, uint64_t chunks);
    void *context;
};

/* Durable when it returns. */
MUST_CHECK struct error *image_import_run(const struct image_import_options *options);

#endif
