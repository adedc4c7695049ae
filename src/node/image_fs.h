/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file system in a disk image: making, mounting and growing it. The record tells its state; the
 * caller holds the volume.
 */
#ifndef NODE_IMAGE_FS_H
#define NODE_IMAGE_FS_H

#include "volumes/held.h"

/*
 * Makes the file system on the device of a volume whose record says that there is none; the caller
 * updates the record.
 */
MUST_CHECK struct error *image_fs_make(const volume_record *volume, const char *device,
                                       struct arena *arena);

/*
 * Makes it if there is none. FAILED_PRECONDITION: something is on the device that must not be
 * overwritten.
 */
MUST_CHECK struct error *image_fs_ensure(struct engine *engine, struct held_volume *held,
                                         const char *device, struct arena *arena);

/*
 * The users of a raw block device may make a file system on it, or restore one, and mount the
 * volume later. Finds out which one an image has that was created for block access, and updates the
 * record; the caller saves it if `*is_new`. FAILED_PRECONDITION: there is none to mount.
 */
MUST_CHECK struct error *image_fs_find(struct engine *engine, volume_record *volume,
                                       struct arena *arena, bool *is_new);

/* Repairs one that was not unmounted properly first. DATA_LOSS if a person has to look. */
MUST_CHECK struct error *image_fs_mount(const volume_record *volume, const char *device,
                                        const char *path, const char *const *flags, bool read_only);

/* Grows it to the size of its device. */
MUST_CHECK struct error *image_fs_grow(struct engine *engine, struct held_volume *held,
                                       const char *device, const char *mount_path,
                                       struct arena *arena);

/*
 * The same for a type that this kernel cannot grow while it is mounted. Does nothing if the image
 * has a device.
 */
MUST_CHECK struct error *image_fs_grow_unmounted(struct engine *engine, struct held_volume *held,
                                                 struct arena *arena);

/*
 * NodeExpandVolume: the devices, and with `mount_path` the file system, get the current size of the
 * image.
 */
MUST_CHECK struct error *image_fs_expand(struct engine *engine, struct held_volume *held,
                                         const char *mount_path, struct arena *arena);

#endif
