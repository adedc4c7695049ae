/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezing volumes: nobody can write to them for a moment, so that copies made one after the other
 * are of one instant.
 *
 * A volume that is not mounted for writing needs no freeze. For an image, the file system in it is
 * frozen (FIFREEZE), and writers wait. Directory trees and raw devices cannot be frozen; they are
 * refused while they are in use.
 */
#ifndef VOLUMES_FREEZE_H
#define VOLUMES_FREEZE_H

#include "volumes/frozen_mount.h"
#include "volumes/rows.h"

/* The longest time that anything stays frozen, whatever happens to this process. */
#define FREEZE_LONGEST_MS FROZEN_MOUNT_LONGEST_MS

struct freeze;

/*
 * The caller holds the volumes. FAILED_PRECONDITION names the volume that cannot be frozen, for
 * instance because a write to it lasts longer than a freeze may. ABORTED: such a write is still
 * running.
 */
MUST_CHECK struct error *freeze_begin(struct engine *engine, volume_record *const *volumes,
                                      size_t count, struct freeze **out);

/* Something is frozen: the caller holds the volumes until freeze_end. */
bool freeze_is_needed(const struct freeze *freeze);

/* The time is up and everything is thawed. For struct progress: `freeze` is a struct freeze. */
bool freeze_is_over(void *freeze);

/*
 * Thaws everything and frees `freeze`. FAILED_PRECONDITION if something was thawed earlier: copies
 * made meanwhile are not of one instant.
 */
MUST_CHECK struct error *freeze_end(struct freeze *freeze);

/*
 * The copies of these volumes took longer than a freeze may last. For a while freeze_begin refuses
 * the volumes at once (FAILED_PRECONDITION), so that retries do not stop their users for nothing.
 */
#define FREEZE_PAUSE_MS 600000
void freeze_remember_slow(struct engine *engine, volume_record *const *volumes, size_t count);

/* Forgets abandoned freezes whose children have ended. Called periodically. */
void freeze_reap_abandoned(struct engine *engine);

/* Forgets abandoned freezes and slow volumes. Called when the engine is closed. */
void freeze_clear(struct engine *engine);

/*
 * Thaws what is still frozen because the process and the child that froze it were killed. Called
 * when the engine is opened.
 */
MUST_CHECK struct error *freeze_recover(struct engine *engine);

#endif
