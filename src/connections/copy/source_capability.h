/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the source of a copy is published. What the request says of a file system and of mount flags
 * is for the target: the source may have another file system, or none.
 */
#ifndef CONNECTIONS_COPY_SOURCE_CAPABILITY_H
#define CONNECTIONS_COPY_SOURCE_CAPABILITY_H

#include "proto/csi.pb-c.h"

struct source_capability {
    Csi__V1__VolumeCapability capability;
    Csi__V1__VolumeCapability__AccessMode access_mode;
    Csi__V1__VolumeCapability__MountVolume mount; /* its fs_type may be set later */
};

/* A block device or a mounted volume as `asked` for the target, on one node. Stays where it is. */
void source_capability_init(struct source_capability *capability,
                            const Csi__V1__VolumeCapability *asked);

#endif
