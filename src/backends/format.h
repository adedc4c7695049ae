/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems on block devices: probes, makes, checks and grows them. Uses the tools of e2fsprogs,
 * xfsprogs and btrfs-progs.
 */
#ifndef BACKENDS_FORMAT_H
#define BACKENDS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/error.h"

/* Every known signature is within this distance of an end of the device. */
#define FORMAT_END_BYTES (1u << 20)

#define FORMAT_NAME_SIZE 64

/* "ext4", "xfs" or "btrfs". */
bool format_is_known(const char *fs_type);

/*
 * The minimum size of a device for such a file system; on a smaller one, making it is OUT_OF_RANGE.
 */
uint64_t format_smallest_bytes(const char *fs_type);

/*
 * What is on the device or in the image file: "" for nothing, the name of a file system or of
 * something else that libblkid knows ("ext4", "LVM2_member", "gpt"), or "unknown data".
 */
MUST_CHECK struct error *format_probe(const char *device, char *found, size_t size);

/* Whether these bytes are anywhere in the two ends of the device that format_probe looks at. */
MUST_CHECK struct error *format_find_bytes(const char *device, const void *bytes, size_t size,
                                           bool *found);

/* The UUID of the file system on the device; "" if it has none. */
MUST_CHECK struct error *format_read_uuid(const char *device, char *uuid, size_t size);

/*
 * Makes the file system if the device is empty: libblkid finds nothing and both ends are zero.
 * Success if there is one of this type. Anything else is FAILED_PRECONDITION and is not touched.
 */
MUST_CHECK struct error *format_ensure(const char *device, const char *fs_type, const char *label);

/*
 * Makes it whatever is there. Only for a caller that knows, from a mark that it made durable
 * before, that its own format_ensure was interrupted.
 */
MUST_CHECK struct error *format_again(const char *device, const char *fs_type, const char *label);

/* Makes both ends zero, durably: the device is blank for format_probe. */
MUST_CHECK struct error *format_wipe(const char *device);

/*
 * Makes the repairs that need no decision, before it is mounted. DATA_LOSS if a person has to look.
 */
MUST_CHECK struct error *format_check(const char *device, const char *fs_type);

/*
 * Labels a mounted file system, with the label cut to its maximum length. Does nothing if it has
 * that label.
 */
MUST_CHECK struct error *format_set_label(const char *mount_path, const char *fs_type,
                                          const char *label);

/* False: ext4 without CAP_SYS_RESOURCE. */
bool format_grows_mounted(const char *fs_type);

/*
 * Grows the file system mounted at `mount_path` to the size of its device. A crash does no harm:
 * the kernel uses the journal. PERMISSION_DENIED if format_grows_mounted is false.
 */
MUST_CHECK struct error *format_grow(const char *device, const char *fs_type,
                                     const char *mount_path);

/*
 * Grows the ext4 in an image file to the size of the file, which is not attached. It grows in a
 * copy that then replaces the file: an interrupted resize2fs leaves a broken file system, and a
 * snapshot taken meanwhile would be broken too.
 */
MUST_CHECK struct error *format_grow_file(const char *image);

#endif
