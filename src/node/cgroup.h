/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enforces I/O limits (volumes/io_limits.h). They are written to the cgroup (v2 io.max, or v1
 * blkio) of the pod for which the volume is published. The pod is found by its uid in the path of
 * the publication (.../pods/UID/...).
 *
 * Version 1 cgroups do not inherit limits, so each cgroup below the pod's gets them too. The
 * cgroups of its containers are created after the publication, so limits have to be applied again
 * from time to time. Version 1 limits only reads, and writes that bypass the page cache or sync it.
 */
#ifndef NODE_CGROUP_H
#define NODE_CGROUP_H

#include <sys/types.h>

#include "base/error.h"
#include "base/text_map.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

struct cgroup_device {
    const char *cgroup_root; /* CGROUP_ROOT except in tests */
    const char *path;        /* of the publication */
    dev_t device;
};

/* Version 1: limits of a pod's cgroup do not apply to cgroups created in it later. */
bool cgroup_must_renew_limits(const char *cgroup_root);

/*
 * Applies the volume's limits to the pod; removes those that are not set. If the path contains no
 * pod, or the pod has no cgroup: success if nothing is limited, FAILED_PRECONDITION otherwise.
 */
MUST_CHECK struct error *cgroup_limit_io(const struct cgroup_device *where,
                                         const struct text_map *parameters);

#endif
