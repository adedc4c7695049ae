/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a server (skycap.v1.Operations) as a client sees them: waiting for the end of one,
 * with a bar on a terminal.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli/client.h"
#include "proto/skycap.pb-c.h"

/* What finds something by its name while its data is copied: `*id` is NULL if that is not so. */
typedef struct error *progress_finder(struct client *client, const char *name, const char **id);
progress_finder progress_find_volume;
progress_finder progress_find_snapshot;

/* Asks for something whose data may have to be copied first, and waits until it is. */
MUST_CHECK struct error *progress_ask(struct client *client, const char *method,
                                      const void *request, progress_finder *find, const char *name,
                                      void *reply);

/* Waits for the operation's end. An error says how it failed, or that it was cancelled. */
MUST_CHECK struct error *progress_follow(struct client *client, const char *id);

/* "53%"; "" where nothing is known. */
const char *progress_percent(const Skycap__V1__Operation *operation, struct arena *arena);

/* "1.2 GiB of 2.3 GiB" */
const char *progress_amount(const Skycap__V1__Operation *operation, struct arena *arena);

/* NULL if it succeeded, or still runs. */
MUST_CHECK struct error *progress_result(const Skycap__V1__Operation *operation);

#endif
