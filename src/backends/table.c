/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of back ends. To add one, add its file, its declaration and its entry here. The xfs back
 * end is in dir.c.
 */
#include "backends/backend.h"

extern const struct backend_ops backend_btrfs;
extern const struct backend_ops backend_dir;
extern const struct backend_ops backend_xfs;
extern const struct backend_ops backend_memory;

const struct backend_ops *const all_backends[] = {
    &backend_btrfs, &backend_dir, &backend_xfs, &backend_memory, NULL,
};
