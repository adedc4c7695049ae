/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a move, at its target. */
#ifndef VOLUMES_MOVE_WORK_H
#define VOLUMES_MOVE_WORK_H

#include "volumes/engine.h"

/* An operation that completes the move of a volume whose row is RECEIVING or INCOMING. */
struct ops_spec move_work_spec(struct engine *engine, const char *handle);

#endif
