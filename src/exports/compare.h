/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what was imported with the repository, byte by byte. DATA_LOSS tells the first
 * difference. Of a tree also: what is there and was not exported, devices, and which names are of
 * one file.
 */
#ifndef EXPORTS_COMPARE_H
#define EXPORTS_COMPARE_H

#include "backends/backend.h"
#include "repository/repository.h"

struct compare_options {
    struct repository *repository;
    struct repository_id root;       /* the manifest */
    uint64_t size;                   /* of an image */
    int fd;                          /* the directory, or the image */
    const struct progress *progress; /* bytes; of a tree without a total, and without holes */
};

MUST_CHECK struct error *compare_image(const struct compare_options *options);
MUST_CHECK struct error *compare_tree(const struct compare_options *options);

#endif
