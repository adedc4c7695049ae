/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repairs what does not match a row although the data is there: a size or a parameter that is not
 * in force, and the note from which a lost store is rebuilt. A power failure leaves such
 * differences in volumes that were created or changed just before it.
 */
#ifndef VOLUMES_MEND_H
#define VOLUMES_MEND_H

#include "volumes/held.h"
#include "volumes/rows.h"

enum note_state {
    NOTE_GOOD,
    NOTE_OLD,  /* it describes an earlier state of the row */
    NOTE_LOST, /* missing, damaged, or of other data: useless for a rebuild */
};

struct mend_need {
    bool settings;
    enum note_state note;
};

/* READY rows only. NOT_FOUND: the data is missing. */
MUST_CHECK struct error *mend_look_at_volume(struct engine *engine, const volume_record *volume,
                                             struct arena *arena, struct mend_need *out);
MUST_CHECK struct error *mend_look_at_snapshot(struct engine *engine, snapshot_record *snapshot,
                                               struct arena *arena, struct mend_need *out);

/* Repairs every difference. */
MUST_CHECK struct error *mend_volume(struct engine *engine, struct held_volume *held,
                                     struct arena *arena);
MUST_CHECK struct error *mend_snapshot(struct engine *engine, snapshot_record *snapshot,
                                       struct arena *arena);

/* What mend_all could not repair. */
struct mend_left {
    bool busy;   /* another request held a volume: try again soon */
    bool failed; /* the log tells which */
};

/*
 * Examines the volumes and snapshots from this handle on, in the order of their handles, and logs
 * what it repaired and what it could not.
 */
MUST_CHECK struct error *mend_all(struct engine *engine, const char *from, struct mend_left *left);

#endif
