/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems on block devices: find out what is there, make one where nothing is, check it, let
 * it grow. Uses the tools of e2fsprogs, xfsprogs and btrfs-progs.
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
 * A device must have at least this for such a file system; making one on a smaller device is
 * OUT_OF_RANGE.
 */
uint64_t format_smallest_bytes(const char *fs_type);

/*
 * What is on the device (or in the image file): "" for nothing at all, the name of a file system or
 * of anything else that has one ("ext4", "LVM2_member", "gpt"), or "unknown data".
 */
MUST_CHECK struct error *format_probe(const char *device, char *found, size_t size);

/*
 * Makes the file system if the device is empty: libblkid finds nothing and both ends of it are
 * zero. One of this type that is there already is success. Anything else is FAILED_PRECONDITION and
 * is not touched.
 */
MUST_CHECK struct error *format_ensure(const char *device, const char *fs_type, const char *label);

/*
 * Makes it whatever is there. Only for a caller who knows, from a mark that it made durable before,
 * that what is there is its own format_ensure that was interrupted.
 */
MUST_CHECK struct error *format_again(const char *device, const char *fs_type, const char *label);

/*
 * Repairs what can be repaired without asking, before it is mounted. DATA_LOSS if a person has to
 * look.
 */
MUST_CHECK struct error *format_check(const char *device, const char *fs_type);

/*
 * Gives a mounted file system a name, cut to what it can hold; one that has it already is left
 * alone.
 */
MUST_CHECK struct error *format_set_label(const char *mount_path, const char *fs_type,
                                          const char *label);

/* False: ext4, where we lack CAP_SYS_RESOURCE. */
bool format_grows_mounted(const char *fs_type);

/*
 * The file system, mounted at `mount_path`, takes all of a device that has become larger. A crash
 * on the way harms none of them: the kernel does it in its journal. PERMISSION_DENIED where
 * format_grows_mounted is false.
 */
MUST_CHECK struct error *format_grow(const char *device, const char *fs_type,
                                     const char *mount_path);

/*
 * The ext4 in an image file takes all of the file. Nobody has it attached. It grows in a copy,
 * which then takes the file's place: resize2fs leaves a ruin when it is interrupted, and a snapshot
 * of the file that is taken meanwhile would be one.
 */
MUST_CHECK struct error *format_grow_file(const char *image);

#endif
