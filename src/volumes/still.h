/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that nobody can write to for a moment, so that copies made one after the other are of one instant.
 *
 * A volume that is not mounted for writing is still by itself. Of an image the file system in it is frozen (FIFREEZE): who writes to it waits. For
 * a directory tree and a raw device there is no such thing: they are refused while they are in use.
 */
#ifndef VOLUMES_STILL_H
#define VOLUMES_STILL_H

#include "volumes/rows.h"

/* A freeze never lasts longer, whatever becomes of us. */
#define STILL_LONGEST_MS 10000

struct still;

/*
 * The caller holds the volumes' keys. FAILED_PRECONDITION names the volume that cannot be held still; also because a write to it has not ended in all the
 * time that a freeze may last. ABORTED: such a write has not ended yet.
 */
MUST_CHECK struct error *still_begin(struct engine *engine, volume_record *const *volumes,
                                     size_t count, struct still **out);

/* Something had to be frozen: the caller keeps the keys until the end. */
bool still_is_frozen(const struct still *still);

/* The time is over and all goes on (of progress, see backend.h: `still` is a struct still). */
bool still_is_over(void *still);

/* Lets all go on. FAILED_PRECONDITION if that had happened before: copies made meanwhile are not of one instant. */
MUST_CHECK struct error *still_end(struct still *still);

/*
 * The copy of these took longer than they can be held still. For a while still_begin refuses them at once (FAILED_PRECONDITION): their users are not stopped in vain
 * with each try.
 */
#define STILL_PAUSE_MS 600000
void still_remember_slow(struct engine *engine, volume_record *const *volumes, size_t count);

/* Freezes that were given up because of such a write: those that have ended meanwhile are forgotten. Every now and then; and at the end all of them. */
void still_finish_left(struct engine *engine);
void still_forget_left(struct engine *engine);

/* Lets go on what was frozen when we, and the one who watched over it, were killed. At the start. */
MUST_CHECK struct error *still_recover(struct engine *engine);

#endif
