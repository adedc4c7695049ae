/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of `skycap volume` share. */
#ifndef CLI_VOLUME_H
#define CLI_VOLUME_H

#include "base/text_map.h"
#include "cli/inventory.h"

/* A capability for `type`: "block", "directory", a file system, or "" for the driver's choice. */
Csi__V1__VolumeCapability *volume_capability(const char *type, struct arena *arena);

/*
 * Publishes the volume at a path as the user gave it. `type` counts if the server does not know how
 * the volume was created, as with third-party drivers.
 */
MUST_CHECK struct error *volume_publish(struct client *client, const volume_info *volume,
                                        const char *type, const char *path, bool read_only);

/* Adds KEY=VALUE to the map. `what` names it in the error. */
MUST_CHECK struct error *volume_read_pair(const char *text, const char *what, struct arena *arena,
                                          struct text_map *map);

/* --rate of commands that transfer data between nodes. NULL text: no limit, 0. */
#define VOLUME_RATE_HELP                                                                           \
    "fetch no more than this per second from another node, such as 10Mi; default: no limit"
MUST_CHECK struct error *volume_read_rate(const char *text, uint64_t *out);

#endif
