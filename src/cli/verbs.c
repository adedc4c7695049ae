/* SPDX-License-Identifier: Apache-2.0 */
/* Subcommands of subcommands: see verbs.h. */
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

#include "cli/client.h"

static void
print_flags(const char *asking)
{
    struct client_flags flags;
    struct option table[CLIENT_FLAG_COUNT];
    client_flag_table(&flags, table);
    if (asking[0])
        printf(" %s have these ", asking);
    else
        puts("\n");
    options_print(table, asking[0] ? CLIENT_FLAG_COUNT : 0);
}

static void
print_help(const struct verbs *verbs)
{
    printf("usage: skycap %s COMMAND [options]\n\n%s\n\ncommands:\n", verbs->command,
           verbs->summary);
    for (size_t i = 0; i < verbs->count; i++)
        printf("  %-10s %s\n", verbs->table[i].name, verbs->table[i].summary);
    printf("\nRun `skycap %s COMMAND --help` for details.", verbs->command);
    print_flags(verbs->asking ? verbs->asking : "All commands");
}

static const struct command *
find(const struct verbs *verbs, const char *name)
{
    for (size_t i = 0; i < verbs->count; i++)
        if (strcmp(verbs->table[i].name, name) == 0)
            return &verbs->table[i];
    return NULL;
}

struct error *
verbs_run(const struct verbs *verbs, int count, char **arguments, enum exit_code *exit_code)
{
    if (count < 2)
        return error_new(CODE_INVALID_ARGUMENT, "no command given (see skycap %s --help)",
                         verbs->command);
    if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0) {
        print_help(verbs);
        return NULL;
    }
    const struct command *verb = find(verbs, arguments[1]);
    if (!verb)
        return error_new(CODE_INVALID_ARGUMENT, "unknown command \"%s %s\" (see skycap %s --help)",
                         verbs->command, arguments[1], verbs->command);
    struct error *error = verb->run(count - 1, arguments + 1, exit_code);
    if (!error)
        *exit_code = EXIT_OK;
    return error;
}
