/* SPDX-License-Identifier: Apache-2.0 */
/* A subcommand of `skycap`: one file each, one line in the table of main.c. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>

#include "base/error.h"

/* What the process says when it ends. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* it was tried and did not work */
    EXIT_USAGE = 2,  /* it could not even be tried: bad flags, unreadable files, addresses in use */
};

struct command {
    const char *name;
    const char *summary; /* one line for `skycap --help` */
    /*
     * arguments[0] is the command's name. Prints nothing but its result; errors are printed by
     * main.
     */
    struct error *(*run)(int count, char **arguments, enum exit_code *exit_code);
};

extern const struct command call_command;
extern const struct command connection_command;
extern const struct command doctor_command;
extern const struct command oim_command;
extern const struct command op_command;
extern const struct command pki_command;
extern const struct command probe_command;
extern const struct command registry_command;
extern const struct command serve_command;
extern const struct command snapshot_command;
extern const struct command version_command;
extern const struct command volume_command;

#endif
