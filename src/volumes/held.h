/* SPDX-License-Identifier: Apache-2.0 */
/* A volume that one request works on alone: its lock is held, its row was read under it. */
#ifndef VOLUMES_HELD_H
#define VOLUMES_HELD_H

#include "volumes/rows.h"

struct held_volume {
    struct name_lock *lock;
    struct row row;
    volume_record *record;
};

/*
 * ABORTED if another request holds it for longer than that; NOT_FOUND. For `struct held_volume held
 * AUTO(held_release) = {0}`.
 */
MUST_CHECK struct error *held_take(struct engine *engine, const char *handle, unsigned wait_ms,
                                   struct arena *arena, struct held_volume *out);
void held_release(struct held_volume *held);

/* Writes what was changed in the record: into the store, and as the note beside the data. */
MUST_CHECK struct error *held_save(struct engine *engine, struct held_volume *held,
                                   struct arena *arena);

/* Into the store alone: the note has been written. */
MUST_CHECK struct error *held_save_row(struct engine *engine, struct held_volume *held);

#endif
