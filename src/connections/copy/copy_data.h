/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the content of one published volume into another: a tree or a block device. */
#ifndef CONNECTIONS_COPY_COPY_DATA_H
#define CONNECTIONS_COPY_COPY_DATA_H

#include "backends/backend.h"

/* Is it empty, except for what mkfs creates? Reads the whole device. CANCELLED. */
MUST_CHECK struct error *copy_data_check_empty(const char *path, const struct progress *progress,
                                               bool *is_empty);

/*
 * Durable when it returns. Keeps what an interrupted copy has already copied correctly.
 * INVALID_ARGUMENT: one is a tree, the other a device. OUT_OF_RANGE: the target device is too
 * small. CANCELLED.
 */
MUST_CHECK struct error *copy_data(const char *from, const char *to,
                                   const struct progress *progress);

#endif
