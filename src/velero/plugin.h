/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of Velero: the process that Velero starts to make snapshots with skycap.
 *
 * It tells its address in one line on stdout, serves until the host says that it may end or is
 * gone, and logs to stderr. It keeps nothing: Velero starts a new process for each of its tasks.
 */
#ifndef VELERO_PLUGIN_H
#define VELERO_PLUGIN_H

#include <stdbool.h>

/* Has a host of Velero's plugins started this process? */
bool plugin_is_started_by_host(void);

/*
 * Serves until the end. `arguments` are what Velero gives, which are its own flags; all but those
 * about logging and features are ignored. Returns the exit code; without a host, 1 after a text
 * that explains what the program is for. `arguments[0]` is what the host is told to start.
 */
int plugin_run(int count, char **arguments);

#endif
