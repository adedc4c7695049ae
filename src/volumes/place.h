/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume at a path of this node: a tree is bound there, the file system of an image mounted, a raw image's device bound. Each function
 * finds out what is there first: what is right already stays, what is left of an earlier mount is replaced.
 */
#ifndef VOLUMES_PLACE_H
#define VOLUMES_PLACE_H

#include "volumes/held.h"
#include "volumes/points.h"

#define PLACE_CGROUP_ROOT "/sys/fs/cgroup"

bool place_is_block(const volume_capability *capability);

/* The mode, or the mount flag ro, allows only reading, whatever else was asked. */
bool place_reads_only(const volume_capability *capability);

/* FAILED_PRECONDITION says what speaks against using the volume so. */
MUST_CHECK struct error *place_check_capability(const volume_record *volume,
                                                const volume_capability *capability);

/*
 * Makes the volume itself appear: formats an image that has no file system yet, lets one grow that is smaller than its image. A raw
 * image gets its device, and nothing appears at the path. `is_known`: a mount at the path is our own, and may be replaced.
 */
MUST_CHECK struct error *place_volume(struct engine *engine, struct held_volume *held,
                                      const struct use *use, bool is_known, struct arena *arena);

/* What is staged appears at another path, which is made. */
MUST_CHECK struct error *place_staged(struct engine *engine, const volume_record *volume,
                                      const struct use *use, bool is_known, struct arena *arena);

/*
 * What the volume's parameters say of its use at a path: the label of its file system, and for a publication how fast its device may be
 * used. The second form only warns: a volume is not kept from its user for that.
 */
MUST_CHECK struct error *place_apply_parameters(struct engine *engine, const volume_record *volume,
                                                const struct use *use, struct arena *arena);
void place_try_parameters(struct engine *engine, const volume_record *volume, const struct use *use,
                          struct arena *arena);

/* The second of these alone. */
MUST_CHECK struct error *place_limit_io(struct engine *engine, const volume_record *volume,
                                        const struct use *use, struct arena *arena);

/* What is at the path goes. */
MUST_CHECK struct error *place_remove(const char *path);

/* The devices of an image go, at the latest with their last user; or only the one that reads. */
MUST_CHECK struct error *place_release_devices(struct engine *engine, const volume_record *volume,
                                               bool only_reader);

/* All of them, unless one is published in a place that no row tells of. */
MUST_CHECK struct error *place_release_unbound(struct engine *engine, const volume_record *volume);

/* Whether what is mounted at the path is this volume. */
MUST_CHECK struct error *place_is_at(struct engine *engine, const volume_record *volume,
                                     const char *path, bool *is_there);

/* Whether the use is in force: a raw image that is staged has its device, everything else is at its path. */
MUST_CHECK struct error *place_is_used(struct engine *engine, const volume_record *volume,
                                       const struct use *use, bool *is_used);

/* What was written to the device of an image is in the image, durably. */
MUST_CHECK struct error *place_flush_device(struct engine *engine, const volume_record *volume);

/* The device of an image, and with `mount_path` its file system, take the size that the image has now. */
MUST_CHECK struct error *place_grow(struct engine *engine, struct held_volume *held,
                                    const char *mount_path, struct arena *arena);

#endif
