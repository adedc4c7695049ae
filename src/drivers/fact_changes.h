/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies waiting threads that drivers, or facts about them, have changed. Shared by reference:
 * drivers close after the waiting threads.
 */
#ifndef DRIVERS_FACT_CHANGES_H
#define DRIVERS_FACT_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

struct fact_changes;

struct fact_changes *fact_changes_new(void);
/* NULL is fine, and gives NULL. */
struct fact_changes *fact_changes_share(struct fact_changes *changes);
/* NULL is fine. */
void fact_changes_release(struct fact_changes *changes);

/* Any thread; never waits. NULL is fine. */
void fact_changes_note(struct fact_changes *changes);

/* All waits return, now and later. */
void fact_changes_stop(struct fact_changes *changes);

/*
 * Waits for a change since `*seen` (0: since the beginning) and updates it, or until the timeout
 * (0: none). False: it is stopped.
 */
bool fact_changes_wait(struct fact_changes *changes, uint64_t *seen, uint32_t timeout_ms);

#endif
