/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of volumes: how the registry, and nodes that talk about a move, call a volume. A key is
 * the handle of the volume. A handle that was made before its node joined the cluster has no home,
 * and "@" and the home of that node follow it. So two nodes that have the same handle, because one
 * is a copy of the other, have different volumes (rule 14 in docs/cluster.md).
 */
#ifndef VOLUMES_MOVE_KEYS_H
#define VOLUMES_MOVE_KEYS_H

#include "volumes/held.h"
#include "volumes/move_cluster.h"

/* In the arena, or the record's. */
const char *move_keys_print(const struct engine *engine, const volume_record *volume,
                            struct arena *arena);
/* The same for the volume that a copy of a snapshot is of. Sets the home of the copy's volume. */
const char *move_keys_of_snapshot(const snapshot_record *snapshot, struct arena *arena);

/* The handle in a key. In the arena. */
const char *move_keys_handle(const char *key, struct arena *arena);

/* For a volume that moves for the first time: its home is this node from now on. */
void move_keys_set_home(const struct engine *engine, volume_record *volume, struct arena *arena);

/* The row of a volume. NOT_FOUND: there is none, or only that of another volume of its handle. */
MUST_CHECK struct error *move_keys_get(struct engine *engine, const char *key, struct arena *arena,
                                       struct row *out);
/* The same, locked, in whatever state. A handle alone stands for the volume that is here. */
MUST_CHECK struct error *move_keys_take(struct engine *engine, const char *key, struct arena *arena,
                                        struct held_volume *out);

/*
 * The key of a volume that this node has no row of. If its handle has no home, and the registry no
 * row of it, all members are asked. NOT_FOUND: none has it. FAILED_PRECONDITION: several nodes have
 * a volume of this handle. UNAVAILABLE: not all members answer.
 */
MUST_CHECK struct error *move_keys_find(const struct engine *engine,
                                        const struct move_cluster *cluster, const char *handle,
                                        struct arena *arena, const char **key);

#endif
