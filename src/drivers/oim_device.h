/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the block device that a controller describes. OIM reports a part of the link below
 * /sys/dev/block, and the SCSI target and LUN if there are any. Only whole disks count.
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
    /* a part of the link; must not begin or end within a number or a disk's name */
    const char *device;
    const char *scsi; /* "TARGET:LUN", decimal; "": no SCSI disk */
};

struct oim_device {
    char name[NAME_MAX + 1]; /* in the kernel: sda, cciss!c0d0 */
    dev_t number;
};

/*
 * NOT_FOUND: there is no such device now. FAILED_PRECONDITION: more than one matches; names them.
 * INTERNAL: the query is invalid.
 */
MUST_CHECK struct error *oim_device_find(const struct oim_device_query *query,
                                         struct oim_device *out);

/* Waits for the device. DEADLINE_EXCEEDED. CANCELLED with the call, which may be NULL. */
MUST_CHECK struct error *oim_device_wait(const struct oim_device_query *query, uint64_t timeout_ms,
                                         const struct call *call, struct oim_device *out);

/* Waits until the device is gone. */
MUST_CHECK struct error *oim_device_wait_gone(const struct oim_device_query *query,
                                              uint64_t timeout_ms, const struct call *call);

/*
 * A path that opens the device: in /dev, or, where /dev does not have it, as in a container, a
 * device node `name` that it creates in `directory`.
 */
MUST_CHECK struct error *oim_device_path(const struct oim_device *device, const char *directory,
                                         const char *name, struct arena *arena, const char **out);

/*
 * Waits until the device can be opened: the kernel shows a disk before it is ready. Errors as
 * above.
 */
MUST_CHECK struct error *oim_device_wait_open(const char *path, uint64_t timeout_ms,
                                              const struct call *call);

/* Removes the device node that oim_device_path has created. */
void oim_device_forget_path(const char *directory, const char *name);

#endif
