/* SPDX-License-Identifier: Apache-2.0 */
/* Completion in shells: the scripts of `skycap completion`, and what they ask for. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/command.h"

/*
 * Prints what the last word may become, one on a line: commands, flags, and the names of volumes
 * and snapshots if a server answers soon. Nothing: the shell completes the name of a file.
 */
void completion_print(const struct command *root, int count, char **words);

#endif
