/* SPDX-License-Identifier: Apache-2.0 */
/* What `skycap serve` says to the person who has started it by hand. */
#ifndef CLI_SERVE_GREETING_H
#define CLI_SERVE_GREETING_H

#include "cli/serve_process.h"

/*
 * On stdout: where the socket, the data and the page are, and a command to try next. With --greet
 * or on a terminal, and never for a service manager, which has the log.
 */
void serve_greet(const struct process *process, const struct serve_settings *settings);

#endif
