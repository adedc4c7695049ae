/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a published volume, into another one: a tree into a tree, a device into a device.
 */
#ifndef CONNECTIONS_COPY_COPY_DATA_H
#define CONNECTIONS_COPY_COPY_DATA_H

#include "backends/backend.h"

/* Nothing is in it but what making a file system leaves; a device is read to its end. CANCELLED. */
MUST_CHECK struct error *copy_data_check_empty(const char *path, const struct progress *progress,
                                               bool *is_empty);

/*
 * Durable when it returns. What an interrupted copy has brought over already is kept where it is
 * seen to be right. INVALID_ARGUMENT: one is a tree, the other a device. OUT_OF_RANGE: the device
 * is too small. CANCELLED.
 */
MUST_CHECK struct error *copy_data(const char *from, const char *to,
                                   const struct progress *progress);

#endif
