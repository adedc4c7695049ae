/* SPDX-License-Identifier: Apache-2.0 */
/* A subcommand that has subcommands of its own: `skycap volume create`. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "cli/command.h"

/* The function of one, as struct command has it. */
#define VERB(name) struct error *name(int count, char **arguments, enum exit_code *exit_code)

struct verbs {
    const char *command; /* "volume" */
    const char *summary; /* what --help says above the list; a sentence or two */
    const struct command *table;
    size_t count;
    const char *asking; /* those that ask a server, "list and show"; NULL: all, "": none */
};

/*
 * Runs the one that arguments[1] names, or prints the help. Without an error the exit code is
 * EXIT_OK.
 */
MUST_CHECK struct error *verbs_run(const struct verbs *verbs, int count, char **arguments,
                                   enum exit_code *exit_code);

#endif
