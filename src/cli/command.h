/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `skycap`, a tree: `skycap volume create` is the command `create` below `volume`.
 * A command declares its arguments and flags; command_run reads them and calls its function:
 *
 *     static struct error *
 *     get(struct client *client)
 *     {
 *         ... client_ask(client, "skycap.v1.Registry/ListEntries", &request, &reply) ...
 *     }
 *
 *     static const struct command get_command = {
 *         .name = "get",
 *         .summary = "print the value at a path",
 *         .words = "PATH",
 *         .help = "Prints the value at PATH.",
 *         .run = get,
 *     };
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>

#include "base/error.h"
#include "cli/options.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* the work has begun and failed */
    EXIT_USAGE = 2,  /* the work could not begin: bad flags, unreadable files, addresses in use */
};

struct client;

/* The flags that a command has in addition to its own. */
enum command_flags {
    COMMAND_SERVER_FLAGS, /* how to reach a server, --timeout and --output */
    COMMAND_OUTPUT_FLAG,
    COMMAND_NO_FLAGS,
};

struct command {
    const char *name;
    const char *summary; /* its line in the list of commands */
    const char *help;    /* a sentence or two, for its own --help */

    /* A command with subcommands; it does nothing else. */
    const struct command *const *below; /* ends with NULL */
    const char *asking; /* the ones with server flags: "list and show"; NULL: all; "": none */
    const char *unimplemented; /* what a server that does not know the methods is: "is not a ..." */

    /* Flags of all commands below, which may stand before their names; NULL: none. */
    const struct option *shared_flags; /* an array that ends with {0} */

    /* A command without. */
    const char *words;          /* arguments that are no flags: "VOLUME [PATH] KEY=VALUE..." */
    const struct option *flags; /* its own, an array that ends with {0}; NULL: none */
    enum command_flags more_flags;
    unsigned long timeout_s; /* default of --timeout; 0: none */
    struct error *(*run)(struct client *client);
};

#define COMMAND_MOST_FLAGS 64

/*
 * All flags of the command, in an array that ends with {0}, with those that the command above it
 * shares. Their values go to the client.
 */
void command_list_flags(const struct command *command, const struct command *above,
                        struct client *client, struct option table[COMMAND_MOST_FLAGS]);

/* Runs the command that the arguments name, `name` or one below it; arguments[0] is skipped. */
MUST_CHECK struct error *command_run(const struct command *command, const char *name, int count,
                                     char **arguments, enum exit_code *exit_code);

extern const struct command call_command;
extern const struct command completion_command;
extern const struct command connection_command;
extern const struct command connection_check_command;
extern const struct command doctor_command;
extern const struct command node_command;
extern const struct command oim_command;
extern const struct command op_command;
extern const struct command parameters_command;
extern const struct command pki_command;
extern const struct command probe_command;
extern const struct command registry_command;
extern const struct command repository_command;
extern const struct command serve_command;
extern const struct command snapshot_command;
extern const struct command snapshot_diff_command;
extern const struct command snapshot_drill_command;
extern const struct command snapshot_export_command;
extern const struct command snapshot_import_command;
extern const struct command snapshot_prune_command;
extern const struct command snapshot_restore_command;
extern const struct command snapshot_spread_command;
extern const struct command snapshot_verify_command;
extern const struct command repository_rebuild_command;
extern const struct command velero_command;
extern const struct command version_command;
extern const struct command volume_command;
extern const struct command volume_create_command;
extern const struct command volume_list_command;
extern const struct command volume_show_command;
extern const struct command volume_clone_command;
extern const struct command volume_expand_command;
extern const struct command volume_modify_command;
extern const struct command volume_move_command;
extern const struct command volume_recover_command;
extern const struct command volume_delete_command;
extern const struct command volume_publish_command;
extern const struct command volume_unpublish_command;

#endif
