/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezing volumes: nobody can write to them for a moment, so that copies made one after the other
 * are of one instant.
 *
 * A volume that is not mounted for writing needs no freeze. Of an image the file system in it is
 * frozen (FIFREEZE): who writes to it waits. Directory trees and raw devices cannot be frozen: they
 * are refused while they are in use.
 */
#ifndef VOLUMES_FREEZE_H
#define VOLUMES_FREEZE_H

#include "volumes/frozen_mount.h"
#include "volumes/rows.h"

/* A freeze never lasts longer, whatever becomes of us. */
#define FREEZE_LONGEST_MS FROZEN_MOUNT_LONGEST_MS

struct freeze;

/*
 * The caller holds the volumes. FAILED_PRECONDITION names the volume that cannot be frozen; also
 * because a write to it has not ended in all the time that a freeze may last. ABORTED: such a write
 * has not ended yet.
 */
MUST_CHECK struct error *freeze_begin(struct engine *engine, volume_record *const *volumes,
                                      size_t count, struct freeze **out);

/* Something is frozen: the caller holds the volumes until the end. */
bool freeze_is_needed(const struct freeze *freeze);

/* The time is over and all is thawed. For struct progress: `freeze` is a struct freeze. */
bool freeze_is_over(void *freeze);

/*
 * Thaws all, and frees `freeze`. FAILED_PRECONDITION if they were thawed before: copies made
 * meanwhile are not of one instant.
 */
MUST_CHECK struct error *freeze_end(struct freeze *freeze);

/*
 * The copy of these took longer than a freeze may last. For a while freeze_begin refuses them at
 * once (FAILED_PRECONDITION), so that their users are not stopped in vain with each try.
 */
#define FREEZE_PAUSE_MS 600000
void freeze_remember_slow(struct engine *engine, volume_record *const *volumes, size_t count);

/*
 * Forgets freezes that were given up because of such a write, and have ended since. For now and
 * then.
 */
void freeze_reap_abandoned(struct engine *engine);

/* Forgets all of them, and the slow ones. When the engine is closed. */
void freeze_clear(struct engine *engine);

/*
 * Thaws what was frozen when we, and the child that froze it, were killed. When the engine is
 * opened.
 */
MUST_CHECK struct error *freeze_recover(struct engine *engine);

#endif
