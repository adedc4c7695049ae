/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a volume, with a progress bar on a terminal. */
#ifndef CLI_VOLUME_MOVE_H
#define CLI_VOLUME_MOVE_H

#include "cli/client.h"

#include "proto/move.pb-c.h"

/*
 * Asks for the move, once. `*operation` is the one to wait for, in the client's arena; NULL: the
 * volume is there, and the reply is set. ABORTED: the move has ended meanwhile; ask again.
 */
MUST_CHECK struct error *volume_move_begin(struct client *client,
                                           const Skycap__V1__MoveVolumeRequest *request,
                                           Skycap__V1__MoveVolumeReply **reply,
                                           const char **operation);

#endif
