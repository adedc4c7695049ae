/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a volume, with a progress bar on a terminal. */
#ifndef CLI_VOLUME_MOVE_H
#define CLI_VOLUME_MOVE_H

#include "cli/client.h"

/* Waits until it is there. If it has to wait for the volume's release, that may take for ever. */
MUST_CHECK struct error *volume_move(struct client *client, const char *volume_id,
                                     const char *node_id, uint64_t *unavailable_ms);

#endif
