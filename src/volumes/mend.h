/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is beside a row and does not fit it, although the data is there: a size or a parameter that
 * is not in force, and the note from which a lost store is made again. A power cut leaves such
 * things of volumes that were made or changed right before it.
 */
#ifndef VOLUMES_MEND_H
#define VOLUMES_MEND_H

#include "volumes/held.h"
#include "volumes/rows.h"

enum note_state {
    NOTE_GOOD,
    NOTE_OLD,  /* it tells of an earlier state of the row */
    NOTE_LOST, /* missing, damaged, or of other data: nothing can be rebuilt from it */
};

struct mend_need {
    bool settings;
    enum note_state note;
};

/* READY rows only. NOT_FOUND: the data is not there. */
MUST_CHECK struct error *mend_look_at_volume(struct engine *engine, const volume_record *volume,
                                             struct arena *arena, struct mend_need *out);
MUST_CHECK struct error *mend_look_at_snapshot(struct engine *engine, snapshot_record *snapshot,
                                               struct arena *arena, struct mend_need *out);

/* Puts right what does not fit, if anything does not. */
MUST_CHECK struct error *mend_volume(struct engine *engine, struct held_volume *held,
                                     struct arena *arena);
MUST_CHECK struct error *mend_snapshot(struct engine *engine, snapshot_record *snapshot,
                                       struct arena *arena);

/* What mend_all has not put right. */
struct mend_left {
    bool busy;   /* a volume that another request held: try again soon */
    bool failed; /* the log says which */
};

/*
 * Looks at the volumes and snapshots from this handle on, in the order of their handles; the log
 * tells what was put right, and what could not be.
 */
MUST_CHECK struct error *mend_all(struct engine *engine, const char *from, struct mend_left *left);

#endif
