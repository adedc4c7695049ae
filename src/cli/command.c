/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the command and reading its arguments: see command.h. */
#include "cli/command.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/nearest.h"

/* ---- a command with subcommands ---- */

static void
print_server_flags(const char *asking)
{
    struct client_flags flags = {0};
    struct option table[CLIENT_FLAG_COUNT + 1] = {0};
    if (asking[0]) {
        client_list_flags(&flags, table);
        printf(" %s have these ", asking);
    } else {
        puts("\n");
    }
    options_print(table);
}

static void
print_commands(const struct command *command, const char *name)
{
    printf("usage: %s COMMAND [options]\n\n%s\n\ncommands:\n", name, command->help);
    for (const struct command *const *below = command->below; *below; below++)
        printf("  %-12s %s\n", (*below)->name, (*below)->summary);
    printf("\nRun `%s COMMAND --help` for details.", name);
    if (command->shared_flags) {
        printf(" All commands have these, before or after COMMAND, as ");
        options_print(command->shared_flags);
        return;
    }
    print_server_flags(command->asking ? command->asking : "All commands");
}

static struct error *
unknown_command(const struct command *command, const char *name, const char *wanted)
{
    struct nearest nearest = {.wanted = wanted};
    for (const struct command *const *below = command->below; *below; below++)
        nearest_try(&nearest, (*below)->name);
    if (nearest.name)
        return error_new(CODE_INVALID_ARGUMENT,
                         "unknown command \"%s %s\"; did you mean \"%s %s\"? (see %s --help)", name,
                         wanted, name, nearest.name, name);
    return error_new(CODE_INVALID_ARGUMENT, "unknown command \"%s %s\" (see %s --help)", name,
                     wanted, name);
}

static struct error *
find_below(const struct command *command, const char *name, const char *wanted,
           const struct command **out)
{
    for (const struct command *const *below = command->below; *below; below++)
        if (strcmp((*below)->name, wanted) == 0) {
            *out = *below;
            return NULL;
        }
    return unknown_command(command, name, wanted);
}

/* ---- a command without ---- */

void
command_list_flags(const struct command *command, const struct command *above,
                   struct client *client, struct option table[COMMAND_MOST_FLAGS])
{
    size_t count = 0;
    for (const struct option *own = command->flags; own && own->name; own++)
        table[count++] = *own;
    for (const struct option *shared = above->shared_flags; shared && shared->name; shared++)
        table[count++] = *shared;
    if (command->more_flags == COMMAND_SERVER_FLAGS) {
        client_list_flags(&client->flags, table + count);
        count += CLIENT_FLAG_COUNT;
    } else if (command->more_flags == COMMAND_OUTPUT_FLAG) {
        table[count++] = client_output_flag(&client->flags);
    }
    table[count] = (struct option){0};
}

static struct error *
check_words(const struct client *client, const char *words, const char *usage)
{
    int least = 0, most = 0;
    for (const char *at = words; *at; at += strspn(at, " ")) {
        least += at[0] != '[';
        most++;
        at += strcspn(at, " ");
    }
    if (client->word_count < least)
        return error_new(CODE_INVALID_ARGUMENT, "an argument is missing (usage: %s)", usage);
    if (client->word_count > most && !strstr(words, "..."))
        return error_new(CODE_INVALID_ARGUMENT, "unexpected argument \"%s\" (usage: %s)",
                         client->words[most], usage);
    return NULL;
}

static struct error *
read_output(struct client *client)
{
    const char *output = client->flags.output;
    client->as_json = output && strcmp(output, "json") == 0;
    if (client->as_json || !output || strcmp(output, "text") == 0)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "--output: \"%s\" is neither text nor json", output);
}

static struct error *
read_arguments(const struct command *command, const struct command *above, const char *name,
               struct client *client, int count, char **arguments, bool *helped)
{
    struct option table[COMMAND_MOST_FLAGS];
    char usage[160];
    const char *words = command->words ? command->words : "";
    snprintf(usage, sizeof usage, "%s %s%s[options]", name, words, words[0] ? " " : "");
    command_list_flags(command, above, client, table);
    int rest;
    struct error *error = options_parse(&(struct options){name, usage, command->help, table}, count,
                                        arguments, &rest, helped);
    if (error || *helped)
        return error;
    client->words = arguments + rest;
    client->word_count = count - rest;
    error = check_words(client, words, usage);
    return error ? error : read_output(client);
}

static struct error *
run(const struct command *command, const struct command *above, const char *name, int count,
    char **arguments, enum exit_code *exit_code)
{
    struct client client AUTO(client_close) = {.flags.timeout_s = command->timeout_s,
                                               .unimplemented = above->unimplemented,
                                               .exit_code = EXIT_USAGE};
    bool helped;
    client_init(&client);
    struct error *error = read_arguments(command, above, name, &client, count, arguments, &helped);
    if (!error && !helped)
        error = command->run(&client);
    *exit_code = error ? client.exit_code : client.has_failed ? EXIT_FAILED : EXIT_OK;
    return error;
}

/* ---- both ---- */

/* Moves the name of the command below in front of the flags that it shares with others. */
static void
move_name_first(const struct command *command, int count, char **arguments)
{
    int at = command->shared_flags ? options_skip(command->shared_flags, count, arguments) : 1;
    if (at == count)
        return;
    char *name = arguments[at];
    memmove(arguments + 2, arguments + 1, (size_t)(at - 1) * sizeof *arguments);
    arguments[1] = name;
}

struct error *
command_run(const struct command *command, const char *name, int count, char **arguments,
            enum exit_code *exit_code)
{
    const struct command *below = NULL;
    char full_name[64];
    *exit_code = EXIT_USAGE;
    if (count < 2)
        return error_new(CODE_INVALID_ARGUMENT, "no command given (see %s --help)", name);
    if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0) {
        *exit_code = EXIT_OK;
        print_commands(command, name);
        return NULL;
    }
    move_name_first(command, count, arguments);
    struct error *error = find_below(command, name, arguments[1], &below);
    if (error)
        return error;
    snprintf(full_name, sizeof full_name, "%s %s", name, below->name);
    if (below->below)
        return command_run(below, full_name, count - 1, arguments + 1, exit_code);
    return run(below, command, full_name, count - 1, arguments + 1, exit_code);
}
