/* SPDX-License-Identifier: Apache-2.0 */
/* What a CSI volume capability asks for. Functions are pure and safe from any thread. */
#ifndef VOLUMES_CAPABILITY_H
#define VOLUMES_CAPABILITY_H

#include "volumes/engine.h"

bool capability_is_block(const volume_capability *capability);

/* Whether one of those that the volume was created with is block access. */
bool capability_any_block(const volume_record *volume);

/* The access mode or the mount flag ro allows only reading. */
bool capability_is_read_only(const volume_capability *capability);

/*
 * The mount flags of a mount capability, one by one, with a NULL at the end. One entry may hold
 * several, separated by commas, as with mount(8).
 */
const char **capability_mount_flags(const volume_capability *capability, struct arena *arena);

/* Same access type, access mode, file system, mount group and mount flags. */
bool capability_is_same(const volume_capability *a, const volume_capability *b);

#endif
