/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion in shells: see completion.h. The scripts are short and know nothing of the commands:
 * they call `skycap complete -- WORD...`, so they stay right when commands change.
 */
#include "cli/completion.h"

#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "proto/inventory.pb-c.h"

#define PATIENCE_S 1 /* for the names of volumes */

/* ---- the scripts ---- */

static const struct {
    const char *shell;
    const char *script;
} scripts[] = {
    {"bash", "_skycap() {\n"
             "    local IFS=$'\\n'\n"
             "    COMPREPLY=($(skycap complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null))\n"
             "}\n"
             "complete -o bashdefault -o default -F _skycap skycap\n"},
    {"zsh", "#compdef skycap\n"
            "_skycap() {\n"
            "    local -a found\n"
            "    found=(${(f)\"$(skycap complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
            "    if (( $#found )); then compadd -a found; else _files; fi\n"
            "}\n"
            "if [[ $funcstack[1] == _skycap ]]; then _skycap \"$@\"; else compdef _skycap skycap; "
            "fi\n"},
    {"fish", "complete -c skycap -a '(skycap complete -- (commandline -opc)[2..] "
             "(commandline -ct) 2>/dev/null)'\n"},
};

static struct error *
print_script(struct client *client)
{
    for (size_t i = 0; i < COUNT_OF(scripts); i++)
        if (strcmp(client->words[0], scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return NULL;
        }
    return error_new(CODE_INVALID_ARGUMENT, "\"%s\" is none of bash, zsh and fish",
                     client->words[0]);
}

const struct command completion_command = {
    .name = "completion",
    .summary = "print a script that completes commands in a shell",
    .words = "SHELL",
    .help =
        "Prints a script for bash, zsh or fish that completes commands, flags, and the names of "
        "volumes and\nsnapshots. For bash: source <(skycap completion bash)",
    .more_flags = COMMAND_NO_FLAGS,
    .run = print_script,
};

/* ---- names ---- */

static void
print_if_begins(const char *name, const char *beginning)
{
    if (strncmp(name, beginning, strlen(beginning)) == 0)
        puts(name);
}

static struct error *
print_volumes(struct client *client, const char *beginning)
{
    Skycap__V1__ListVolumesRequest request = SKYCAP__V1__LIST_VOLUMES_REQUEST__INIT;
    Skycap__V1__ListVolumesResponse *all;
    struct error *error =
        client_ask_pages(client, "skycap.v1.Inventory/ListVolumes", &request, &all);
    for (size_t i = 0; !error && i < all->n_volumes; i++)
        print_if_begins(all->volumes[i]->name, beginning);
    return error;
}

static struct error *
print_snapshots(struct client *client, const char *beginning)
{
    Skycap__V1__ListSnapshotsRequest request = SKYCAP__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Skycap__V1__ListSnapshotsResponse *all;
    struct error *error =
        client_ask_pages(client, "skycap.v1.Inventory/ListSnapshots", &request, &all);
    for (size_t i = 0; !error && i < all->n_snapshots; i++)
        print_if_begins(all->snapshots[i]->name, beginning);
    return error;
}

/* `kind` is a word of the command's usage, such as "VOLUME" or "[SNAPSHOT]". */
static void
print_names(const char *kind, size_t size, const char *beginning)
{
    struct client client AUTO(client_close) = {.flags.timeout_s = PATIENCE_S};
    client_init(&client);
    if (memmem(kind, size, "VOLUME", 6))
        error_free(print_volumes(&client, beginning));
    else if (memmem(kind, size, "SNAPSHOT", 8))
        error_free(print_snapshots(&client, beginning));
}

/* The word at this position of the usage. One with "..." stands for all that follow. */
static void
print_words(const char *usage, int position, const char *beginning)
{
    for (const char *at = usage; at && *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        if (position-- == 0 || memmem(at, size, "...", 3)) {
            print_names(at, size, beginning);
            return;
        }
        at += size;
    }
}

/* ---- commands and flags ---- */

static const struct command *
find_below(const struct command *command, const char *name)
{
    for (const struct command *const *below = command->below; below && *below; below++)
        if (strcmp((*below)->name, name) == 0)
            return *below;
    return NULL;
}

static bool
is_flag(const struct option *option, const char *word)
{
    return (strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0) ||
           (word[0] == '-' && option->letter && word[1] == option->letter && !word[2]);
}

static bool
takes_value(const struct option *table, const char *word)
{
    for (; table->name; table++)
        if (is_flag(table, word))
            return table->kind != OPTION_FLAG;
    return false;
}

static void
print_flags(const struct option *table, const char *beginning)
{
    char flag[64];
    for (; table->name; table++) {
        snprintf(flag, sizeof flag, "--%s", table->name);
        print_if_begins(flag, beginning);
    }
}

static void
complete_arguments(const struct command *command, const struct command *above, int count,
                   char **words)
{
    struct client client = {0};
    struct option table[COMMAND_MOST_FLAGS];
    const char *last = words[count - 1];
    int position = 0;
    command_list_flags(command, above, &client, table);
    if (count > 1 && takes_value(table, words[count - 2]))
        return;
    if (last[0] == '-') {
        print_flags(table, last);
        return;
    }
    for (int i = 0; i + 1 < count; i++)
        position += words[i][0] != '-' && !(i && takes_value(table, words[i - 1]));
    print_words(command->words, position, last);
}

void
completion_print(const struct command *root, int count, char **words)
{
    const struct command *command = root, *above = root;
    if (count && strcmp(words[0], "--") == 0) {
        count--;
        words++;
    }
    for (; count > 1 && command->below; count--, words++) {
        above = command;
        command = find_below(command, words[0]);
        if (!command)
            return;
    }
    if (!count)
        return;
    for (const struct command *const *below = command->below; below && *below; below++)
        print_if_begins((*below)->name, words[0]);
    if (!command->below)
        complete_arguments(command, above, count, words);
}
