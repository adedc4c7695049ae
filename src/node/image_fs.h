/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file system in a disk image, from its making to its growth. The record says how far it is;
 * who calls holds the volume.
 */
#ifndef NODE_IMAGE_FS_H
#define NODE_IMAGE_FS_H

#include "volumes/held.h"

/*
 * Makes it on the device of a volume that has none yet, as far as its record says; who calls makes
 * the record say otherwise then.
 */
MUST_CHECK struct error *image_fs_make(const volume_record *volume, const char *device,
                                       struct arena *arena);

/*
 * Makes it if there is none yet. FAILED_PRECONDITION: something is on the device that is not ours
 * to overwrite.
 */
MUST_CHECK struct error *image_fs_ensure(struct engine *engine, struct held_volume *held,
                                         const char *device, struct arena *arena);

/* One that was not left properly is repaired first. DATA_LOSS if a person has to look. */
MUST_CHECK struct error *image_fs_mount(const volume_record *volume, const char *device,
                                        const char *path, const char *const *flags, bool read_only);

/* It takes all of its device, if that has become larger. */
MUST_CHECK struct error *image_fs_grow(struct engine *engine, struct held_volume *held,
                                       const char *device, const char *mount_path,
                                       struct arena *arena);

/*
 * The same for a kind that this kernel does not let grow while it is mounted; nothing where the
 * image has a device already.
 */
MUST_CHECK struct error *image_fs_grow_unmounted(struct engine *engine, struct held_volume *held,
                                                 struct arena *arena);

/*
 * NodeExpandVolume: the devices, and with `mount_path` the file system, take the size that the
 * image has now.
 */
MUST_CHECK struct error *image_fs_expand(struct engine *engine, struct held_volume *held,
                                         const char *mount_path, struct arena *arena);

#endif
