/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block device that a controller means: OIM tells a part of the link below /sys/dev/block, and
 * the SCSI disk if there is one. Only whole disks count.
 *
 *     8:0 -> ../../devices/pci0000:00/0000:00:15.0/virtio3/host2/target2:0:10/2:0:10:0/block/sda
 *               device "/devices/pci0000:00/0000:00:15.0/", scsi "10:0"
 */
#ifndef DRIVERS_OIM_DEVICE_H
#define DRIVERS_OIM_DEVICE_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "rpc/server/call.h"

struct oim_device_query {
    const char *sysfs; /* "/sys" */
    /* a part of the link, which may begin and end anywhere but within a number or a disk's name */
    const char *device;
    const char *scsi; /* "target:lun", decimal; "": it is no SCSI disk */
};

struct oim_device {
    char name[NAME_MAX + 1]; /* in the kernel: sda, cciss!c0d0 */
    dev_t number;
};

/*
 * NOT_FOUND: there is none now. FAILED_PRECONDITION: more than one fits, it names them. INTERNAL:
 * the query itself makes no sense.
 */
MUST_CHECK struct error *oim_device_find(const struct oim_device_query *query,
                                         struct oim_device *out);

/*
 * Waits for it. DEADLINE_EXCEEDED: it has not come within that time, and what was looked for.
 * CANCELLED with the call, which may be NULL.
 */
MUST_CHECK struct error *oim_device_wait(const struct oim_device_query *query, uint64_t timeout_ms,
                                         const struct call *call, struct oim_device *out);

/* Waits until there is none. */
MUST_CHECK struct error *oim_device_wait_gone(const struct oim_device_query *query,
                                              uint64_t timeout_ms, const struct call *call);

/*
 * A path that opens it: that in /dev, or, where /dev does not have it, as in a container, a node
 * that is made in `directory` under the given name. Lives in the arena.
 */
MUST_CHECK struct error *oim_device_path(const struct oim_device *device, const char *directory,
                                         const char *name, struct arena *arena, const char **out);

/*
 * Waits until it can be opened: the kernel shows a disk before it is ready, and opening it gives
 * ENXIO until then. DEADLINE_EXCEEDED, CANCELLED as above.
 */
MUST_CHECK struct error *oim_device_wait_open(const char *path, uint64_t timeout_ms,
                                              const struct call *call);

/* A node that oim_device_path has made goes. */
void oim_device_forget_path(const char *directory, const char *name);

#endif
