/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I/O limits (volumes/io_limits.h) in force. The kernel enforces them: they are written into the
 * control group (v2 io.max, or v1 blkio) of the pod that the volume is published for, which is
 * found by the pod's uid in the path of the publication (.../pods/UID/...).
 *
 * Control groups of version 1 do not inherit them: there each group below the pod's gets them too.
 * Those of its containers come after the publication, so whoever applies limits there applies them
 * again now and then. And there the kernel limits only reads, and writes that bypass the page cache
 * or sync it.
 */
#ifndef NODE_CGROUP_H
#define NODE_CGROUP_H

#include <sys/types.h>

#include "base/error.h"
#include "base/text_map.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

struct cgroup_device {
    const char *cgroup_root; /* CGROUP_ROOT but in tests */
    const char *path;        /* of the publication */
    dev_t device;
};

/* Version 1: what is written to a pod's group does not hold for groups that come into it later. */
bool cgroup_must_renew_limits(const char *cgroup_root);

/*
 * Puts the volume's limits in force for the pod; those that are not set are lifted. Success where
 * there is no pod in the path, or no control group for it, if nothing is limited;
 * FAILED_PRECONDITION otherwise.
 */
MUST_CHECK struct error *cgroup_limit_io(const struct cgroup_device *where,
                                         const struct text_map *parameters);

#endif
