/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells that something has changed of what is known of drivers, or which there are: whoever has to
 * pass that on waits here instead of asking again and again. Shared by reference: drivers close
 * after those who listen.
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

/* Whoever waits goes on, now and from now on. */
void fact_changes_stop(struct fact_changes *changes);

/*
 * Until something has changed since `*seen` (0: since the beginning), which is brought up to date,
 * or the time is over; 0: there is no limit. False: it is stopped.
 */
bool fact_changes_wait(struct fact_changes *changes, uint64_t *seen, uint32_t timeout_ms);

#endif
