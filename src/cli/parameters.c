/* SPDX-License-Identifier: Apache-2.0 */
/* skycap parameters. */
#include <stdio.h>

#include "base/json.h"
#include "cli/client.h"
#include "cli/table.h"
#include "volumes/parameter_table.h"

static char *
values_of(const struct parameter *parameter, struct arena *arena)
{
    struct buffer text AUTO(buffer_clear) = {0};
    parameter_table_print_values(parameter, &text);
    return arena_string(arena, buffer_text(&text));
}

/* The backticks are for documents. */
static const char *
without_backticks(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != '`')
            *to++ = *from;
    *to = '\0';
    return text;
}

/* One object in a line, as `skycap doctor` prints them. */
static void
print_json(const char *of, const struct parameter *parameter, struct arena *arena)
{
    struct buffer line AUTO(buffer_clear) = {0};
    json_append_member(&line, "of", of);
    json_append_member(&line, "parameter", parameter->key);
    json_append_member(&line, "values", values_of(parameter, arena));
    json_append_member(&line, "canBeChanged", parameter->is_mutable ? "yes" : "no");
    json_append_member(&line, "meaning", parameter->meaning);
    printf("%s}\n", buffer_text(&line));
}

static void
add(struct client *client, struct table *table, const char *of, const struct parameter *all)
{
    for (const struct parameter *one = all; one->key; one++) {
        if (client->as_json) {
            print_json(of, one, &client->arena);
            continue;
        }
        table_add(table, of);
        table_add(table, one->key);
        table_add(table, one->is_mutable ? "yes" : "no");
        table_add(table, without_backticks(values_of(one, &client->arena)));
    }
}

static struct error *
print(struct client *client)
{
    static const char *const headings[] = {"OF", "PARAMETER", "CAN BE CHANGED", "VALUES"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    add(client, &table, "volume", parameter_table_of_volumes);
    add(client, &table, "snapshot", parameter_table_of_snapshots);
    if (!client->as_json)
        table_print(&table);
    return NULL;
}

const struct command parameters_command = {
    .name = "parameters",
    .summary = "list the parameters of volumes and snapshots",
    .help =
        "Lists the parameters that volumes (`skycap volume create`, a StorageClass) and snapshots "
        "(a\nVolumeSnapshotClass) can have. It asks no server. -o json adds what each means.",
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = print,
};
