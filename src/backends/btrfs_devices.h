/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the devices of a btrfs file system, and when it was scrubbed. */
#ifndef BACKENDS_BTRFS_DEVICES_H
#define BACKENDS_BTRFS_DEVICES_H

#include "backends/backend.h"

/* `devices` of struct backend_ops. */
MUST_CHECK struct error *btrfs_devices(struct backend *backend, struct backend_devices *out);

/*
 * What a status file of btrfs-progs says: when the last scrub began, if it is complete on all of
 * the file's devices; else 0. The text is changed.
 */
int64_t btrfs_devices_read_status(char *text);

#endif
