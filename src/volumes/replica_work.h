/* SPDX-License-Identifier: Apache-2.0 */
/* The work that makes a copy of another node's snapshot. */
#ifndef VOLUMES_REPLICA_WORK_H
#define VOLUMES_REPLICA_WORK_H

#include "volumes/engine.h"

/* An operation that completes a replica whose row is COPYING. */
struct ops_spec replica_work_spec(struct engine *engine, const char *handle);

/* It is complete: tells the registry and the origin. What fails is repeated later. */
void replica_work_tell(struct engine *engine, const snapshot_record *replica);

#endif
