/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for operations of a server (skycap.v1.Operations), with a progress bar on a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli/client.h"
#include "proto/skycap.pb-c.h"

/* Finds a volume or snapshot by its name; `*id` is NULL if it is not being copied. */
typedef struct error *progress_finder(struct client *client, const char *name, const char **id);
progress_finder progress_find_volume;
progress_finder progress_find_snapshot;

/* Asks for a volume or snapshot, and waits until its data has been copied. */
MUST_CHECK struct error *progress_ask(struct client *client, const char *method,
                                      const void *request, progress_finder *find, const char *name,
                                      void *reply);

/* Waits until the operation has ended. The error says how it failed, or that it was cancelled. */
MUST_CHECK struct error *progress_follow(struct client *client, const char *id);

/* A bar with rate and time left, on the terminal. Set `draws` if there is one. */
struct progress_bar {
    bool draws;
    bool has_drawn;
};

/* Draws it in the place of the last one. */
void progress_draw(struct progress_bar *progress, const Skycap__V1__Operation *operation);
/* Removes it; the result follows. */
void progress_wipe(const struct progress_bar *bar);

/* "53%", or "" if unknown. */
const char *progress_percent(const Skycap__V1__Operation *operation, struct arena *arena);

/* "1.2 GiB of 2.3 GiB" */
const char *progress_amount(const Skycap__V1__Operation *operation, struct arena *arena);

/* "85.2 MiB/s", and "12 s"; "" if unknown. */
const char *progress_rate(const Skycap__V1__Operation *operation, struct arena *arena);
const char *progress_time_left(const Skycap__V1__Operation *operation, struct arena *arena);

/* "queued", "running", "waiting", "stalled", "ending", "succeeded", "failed" or "cancelled". */
const char *progress_state(const Skycap__V1__Operation *operation);

/* NULL if it succeeded, or still runs. */
MUST_CHECK struct error *progress_result(const Skycap__V1__Operation *operation);

#endif
