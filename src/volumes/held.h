/* SPDX-License-Identifier: Apache-2.0 */
/* A volume that is locked for one request, with its row, which was read under the lock. */
#ifndef VOLUMES_HELD_H
#define VOLUMES_HELD_H

#include "volumes/rows.h"

struct held_volume {
    struct name_lock *lock;
    struct row row;
    volume_record *record;
};

/*
 * ABORTED if another request holds the volume for longer than `wait_ms`; NOT_FOUND. For `struct
 * held_volume held AUTO(held_release) = {0}`.
 */
MUST_CHECK struct error *held_take(struct engine *engine, const char *handle, unsigned wait_ms,
                                   struct arena *arena, struct held_volume *out);
/* The same in any state: for moves and deletions, and to undo its use. */
MUST_CHECK struct error *held_take_any(struct engine *engine, const char *handle, unsigned wait_ms,
                                       struct arena *arena, struct held_volume *out);
void held_release(struct held_volume *held);

/* Writes the changed record to the store and as the note beside the data. */
MUST_CHECK struct error *held_save(struct engine *engine, struct held_volume *held,
                                   struct arena *arena);

/* Writes only to the store: the note has been written. */
MUST_CHECK struct error *held_save_row(struct engine *engine, struct held_volume *held);

#endif
