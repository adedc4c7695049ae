/* SPDX-License-Identifier: Apache-2.0 */
/* skycap snapshot drill. */
#include <stdio.h>
#include <string.h>

#include "cli/inventory.h"
#include "message/message_json.h"
#include "proto/repositories.pb-c.h"

static const char *repository = "";
static const char *command = "";

static const struct option drill_flags[] = {
    {"repository", 'r', "NAME", OPTION_TEXT, &repository,
     "where from; default: the only one that the server has"},
    {"command", 'c', "CMD", OPTION_TEXT, &command,
     "a shell command that the server runs with $SKYCAP_DRILL_PATH or $SKYCAP_DRILL_DEVICE, if it "
     "has --allow-drill-commands"},
    {0},
};

struct drill {
    struct client *client;
    bool has_result;
};

static struct error *
take(void *context, const void *bytes)
{
    struct drill *drill = context;
    struct client *client = drill->client;
    const Skycap__V1__DrillStep *step = bytes;
    drill->has_result |= step->is_result;
    if (client->as_json) {
        client_print_json(step, 0);
        return NULL;
    }
    if (step->output[0])
        printf("%s%s", step->output, step->output[strlen(step->output) - 1] == '\n' ? "" : "\n");
    if (step->is_result)
        printf("the drill has succeeded: %s of the snapshot %.12s\n",
               inventory_bytes_text(step->bytes, &client->arena), step->snapshot_id);
    else
        printf("%-10s%.1f s\n", step->step, (double)step->duration_ms / 1000);
    fflush(stdout); /* the next step may take long */
    return NULL;
}

static struct error *
run(struct client *client)
{
    struct drill drill = {.client = client};
    Skycap__V1__DrillRequest request = SKYCAP__V1__DRILL_REQUEST__INIT;
    char *words[] = {"/bin/sh", "-c", (char *)command};
    request.repository = (char *)repository;
    request.snapshot = client->word_count ? client->words[0] : "";
    request.command = words;
    request.n_command = command[0] ? COUNT_OF(words) : 0;
    struct error *error =
        client_ask_stream(client, "skycap.v1.Repositories/Drill", &request, take, &drill);
    if (!error && !drill.has_result)
        error = error_new(CODE_UNAVAILABLE, "the server ended before the drill did: repeat it");
    return error;
}

const struct command snapshot_drill_command = {
    .name = "drill",
    .summary = "restore a snapshot from a repository, check it and delete it again",
    .words = "[SNAPSHOT]",
    .help = "Restores a snapshot from a repository to a volume of its own, compares every byte, "
            "runs a check, and deletes\nthe volume. Without SNAPSHOT it takes the newest. Fails if "
            "anything is wrong. Ctrl-C cancels it.",
    .flags = drill_flags,
    .run = run,
};
