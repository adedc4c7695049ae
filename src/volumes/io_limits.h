/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits on how fast a workload may use the device of an image: bytes and operations per second, reading and writing. They are the
 * kernel's: written into the control group (v2 io.max, or v1 blkio) of the pod that the volume is published for, which is found by the
 * pod's uid in the path of the publication (.../pods/UID/...).
 *
 * Control groups of version 1 do not inherit them: there each group below the pod's gets them too. Those of its containers come after the publication, so whoever
 * applies limits there applies them again now and then. And there the kernel limits only reads, and writes that bypass the page cache or sync it.
 */
#ifndef VOLUMES_IO_LIMITS_H
#define VOLUMES_IO_LIMITS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/text_map.h"

/* The parameters that carry them; their values are numbers, like 500 or 20Mi, or "unlimited". */
#define IO_LIMITS_COUNT 4
extern const char *const io_limits_keys[IO_LIMITS_COUNT];

MUST_CHECK struct error *io_limits_check_value(const char *text);

/* Whether any of them is set. */
bool io_limits_are_set(const struct text_map *parameters);

struct io_limits {
    const char *cgroup_root; /* "/sys/fs/cgroup" but in tests */
    const char *path;        /* of the publication */
    dev_t device;
};

/* Version 1: what is written to a pod's group does not hold for groups that come into it later. */
bool io_limits_must_be_renewed(const char *cgroup_root);

/*
 * Puts the volume's limits in force for the pod; those that are not set are lifted. Success where there is no pod in the path, or no control group
 * for it, if nothing is limited; FAILED_PRECONDITION otherwise.
 */
MUST_CHECK struct error *io_limits_apply(const struct io_limits *where,
                                         const struct text_map *parameters);

#endif
