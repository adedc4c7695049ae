/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap: finds the subcommand and runs it. A new subcommand is one file and one line in this
 * table.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

/* clang-format off */
static const struct command *const commands[] = {
    &serve_command,
    &volume_command,
    &snapshot_command,
    &op_command,
    &connection_command,
    &registry_command,
    &oim_command,
    &probe_command,
    &doctor_command,
    &pki_command,
    &call_command,
    &version_command,
};
/* clang-format on */

static void
print_help(void)
{
    puts("usage: skycap COMMAND [options]\n\nA CSI driver, storage router, and OIM registry and "
         "controller.\n\ncommands:");
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
    puts("\nRun `skycap COMMAND --help` for details.");
}

static const struct command *
find_command(const char *name)
{
    if (strcmp(name, "--version") == 0)
        return &version_command;
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

int
main(int count, char **arguments)
{
    if (count < 2) {
        fputs("skycap: no command given (see skycap --help)\n", stderr);
        return EXIT_USAGE;
    }
    if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0) {
        print_help();
        return EXIT_OK;
    }
    const struct command *command = find_command(arguments[1]);
    if (!command) {
        fprintf(stderr, "skycap: unknown command \"%s\" (see skycap --help)\n", arguments[1]);
        return EXIT_USAGE;
    }
    enum exit_code exit_code = EXIT_OK;
    struct error *error AUTO(error_cleanup) = command->run(count - 1, arguments + 1, &exit_code);
    if (error) {
        fprintf(stderr, "skycap: %s\n", error->message);
        return exit_code == EXIT_OK ? EXIT_USAGE : exit_code;
    }
    return exit_code;
}
