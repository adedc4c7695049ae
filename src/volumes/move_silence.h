/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how long the targets of moves from this node have not answered. Only in memory: after a
 * restart it begins anew. For one thread.
 */
#ifndef VOLUMES_MOVE_SILENCE_H
#define VOLUMES_MOVE_SILENCE_H

#include "volumes/engine.h"

/* Zeroed: all have answered. */
struct move_silence {
    struct silent_move *first;
};

/* The target of this move has not answered. Returns for how long, since the first time. */
uint64_t move_silence_ms(struct move_silence *silence, const volume_record *volume);

/* It has answered. */
void move_silence_end(struct move_silence *silence, const volume_record *volume);

/* All moves were looked at: forgets those that were not silent since the last call. */
void move_silence_end_round(struct move_silence *silence);

void move_silence_clear(struct move_silence *silence);

#endif
